/** Machines move to another host: asleep or awake, with requests meanwhile, and with either host killed at any step. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { stepsOfMove } from "../../../platform/test/helpers/move-steps.ts";
import { KEYS } from "../../src/keys.ts";
import type { MoveProgress } from "../../src/moves/source.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

const ownerOf = (id: string) => ownerIn(world, id);

interface Memory {
  id: string;
  nonce: string;
}

async function asleep(host: TestHost): Promise<Memory> {
  const memory = await runOn(host);
  host.platform.machines.suspend("shop", memory.id);
  await host.platform.machines.wait("shop", memory.id, ["suspended"], TIMEOUT);
  return memory;
}

async function wake({ platform, world: { host } }: TestHost, id: string): Promise<string | undefined> {
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
  return host.guest(id)?.request()?.nonce;
}

const ids = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
const left = async ({ world: { folder } }: TestHost) =>
  (await readdir(join(folder, "incoming")).catch(() => [])).length;

describe("a sleeping machine", () => {
  test("wakes on the other host with its memory, its address and its history, and is gone here", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce } = await asleep(a);
    const { address } = a.platform.machines.get("shop", id).record;
    const steps: MoveProgress[] = [];
    const onProgress = (progress: MoveProgress) => void steps.push(progress);
    await a.moves.source.move(id, { to: "b", cold: false, onProgress }, never());
    expect(await ownerOf(id)).toMatchObject({ host: "b", epoch: 2, address });
    expect([ids(a), ids(b)]).toEqual([[], [id]]);
    const moved = b.platform.machines.get("shop", id).record;
    expect(moved).toMatchObject({ state: "suspended", epoch: 2, address });
    expect(await wake(b, id)).toBe(nonce);
    expect(b.platform.machines.get("shop", id).record.lastBoot?.kind).toBe("resume");
    const types = b.platform.machines.events("shop", id, 100).map(({ type }) => type);
    expect(types.toReversed()).toEqual([
      "create",
      "start",
      "started",
      "suspend",
      "captured",
      "moved_in",
      "start",
      "started",
    ]);
    expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
    expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
    expect([...new Set(steps.map(({ step }) => step))]).toEqual([
      "check",
      "precopy",
      "suspend",
      "copy",
      "commit",
      "done",
    ]);
    expect(steps.at(-2)).toMatchObject({ step: "commit", bytes: steps.at(-2)?.totalBytes });
    expect(await left(b)).toBe(0);
    const times = { check: expect.any(Number), copy: expect.any(Number), commit: expect.any(Number) };
    expect(a.world.logged).toContainEqual({
      fields: { machine: id, host: "b", ms: expect.objectContaining(times) },
      message: "a machine has moved to another host",
    });
    expect(b.world.logged).toContainEqual({
      fields: { machine: id, host: "a", ms: expect.objectContaining({ receive: expect.any(Number) }) },
      message: "a machine has come from another host",
    });
  });

  test("goes there and back again", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce } = await asleep(a);
    await a.moves.source.move(id, { to: "b", cold: false }, never());
    await b.moves.source.move(id, { to: "a", cold: false }, never());
    expect(await ownerOf(id)).toMatchObject({ host: "a", epoch: 3 });
    expect(await wake(a, id)).toBe(nonce);
  });

  test("that is asked for meanwhile starts on the other host", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce } = await asleep(a);
    const onProgress = ({ step }: MoveProgress) => {
      if (step === "copy") a.platform.machines.start("shop", id, { by: "proxy" });
    };
    await a.moves.source.move(id, { to: "b", cold: false, onProgress }, never());
    await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  });

  test("refuses what would change it meanwhile", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const { id } = await asleep(a);
    const refused: unknown[] = [];
    const onProgress = ({ step }: MoveProgress) => {
      if (step !== "copy" || refused.length > 0) return;
      try {
        a.platform.machines.destroy("shop", id);
      } catch (error) {
        refused.push(error);
      }
    };
    await a.moves.source.move(id, { to: "b", cold: false, onProgress }, never());
    expect(refused).toMatchObject([{ code: "aborted", message: expect.stringContaining("being moved to host b") }]);
  });
});

describe("a running machine", () => {
  test("is suspended first, and runs on with its memory on the other host", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce } = await runOn(a);
    await a.moves.source.move(id, { to: "b", cold: false }, never());
    await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(b.world.host.guest(id)?.request()).toMatchObject({ nonce });
    expect(a.world.host.of(id)).toEqual([]);
    expect(world.mostPerMachine).toBe(1);
  });

  test("finishes its open requests first, while new ones wait, also when it stays in the end", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const requests = Promise.withResolvers<void>();
    const told: string[] = [];
    const holdBack = () => {
      told.push("held back");
      return () => void told.push("given back");
    };
    const finishRequests = () => {
      told.push("finishing");
      return requests.promise;
    };
    await a.restart({ wrap: (deps) => ({ ...deps, holdBack, finishRequests }) });
    const { id, nonce } = await runOn(a);
    const abort = new AbortController();
    const refused = a.moves.source.move(id, { to: "b", cold: false }, abort.signal);
    await vi.waitFor(() => expect(told).toEqual(["held back", "finishing"]));
    abort.abort(new Error("no longer wanted"));
    await expect(refused).rejects.toThrow("no longer wanted");
    expect(told.at(-1)).toBe("given back");
    expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);

    const moved = a.moves.source.move(id, { to: "b", cold: false }, never());
    await vi.waitFor(() => expect(told.at(-1)).toBe("finishing"));
    expect(a.platform.machines.get("shop", id).record.state).toBe("running");
    requests.resolve();
    await moved;
    expect(told.slice(-3)).toEqual(["held back", "finishing", "given back"]);
  });

  test("on an older CPU is refused before anything happens to it, and moves without its memory", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    b.world.identity.cpu_model = "older";
    await b.restart();
    const { id, nonce } = await runOn(a);
    await expect(a.moves.source.move(id, { to: "b", cold: false }, never())).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/cpu_model_changed: CPU model was none, is older.*--cold/),
    });
    expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
    await a.moves.source.move(id, { to: "b", cold: true }, never());
    await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(b.platform.machines.get("shop", id).record.lastBoot?.kind).toBe("cold");
    expect(b.world.host.guest(id)?.request()?.nonce).not.toBe(nonce);
  });

  test("runs on here when the other host goes away in the middle", async () => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id, nonce } = await runOn(a);
    const onProgress = ({ step }: MoveProgress) => {
      if (step === "suspend") void b.stop();
    };
    await expect(a.moves.source.move(id, { to: "b", cold: false, onProgress }, never())).rejects.toMatchObject({
      code: "host_unreachable",
    });
    await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
    expect(await ownerOf(id)).toMatchObject({ host: "a", epoch: 1 });
  });
});

test.each([
  ["the host that it is on", "a", "invalid_argument"],
  ["a host that the cluster does not have", "c", "invalid_argument"],
])("a move to %s is refused", async (_what, to, code) => {
  world = await newClusterWorld(["a", "b"]);
  const { id } = await asleep(world.host("a"));
  await expect(world.host("a").moves.source.move(id, { to, cold: false }, never())).rejects.toMatchObject({ code });
});

const steps = await stepsOfMove(asleep, { cold: false });

test("the rehearsal has the announcement, the commit, and both ends of the machine", () => {
  expect(steps.map(({ who, name }) => `${who} ${name}`)).toEqual(
    expect.arrayContaining(["a directory.transact", "b directory.transact", "b custody.takeIn", "a custody.takeAway"]),
  );
});

describe("killed", () => {
  test.each(steps)(
    "host $who $when $name ($passing before): the machine is on one host, with its memory",
    async (step) => {
      const { who, when, name, passing } = step;
      world = await newClusterWorld(["a", "b"]);
      const [a, b] = [world.host("a"), world.host("b")];
      const { id, nonce } = await asleep(a);
      const mortality = new Mortality();
      await world.host(who).restart({ mortality });
      mortality.arm(name, when, { passing });
      const moved = a.moves.source.move(id, { to: "b", cold: false }, never()).catch(() => {});
      await Promise.race([mortality.death.promise, moved]);
      expect(mortality.dead).toBe(true);
      if (who === "b") await moved;
      await world.host(who).restart();
      const owner = await vi.waitFor(async () => {
        expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
        const found = await ownerOf(id);
        expect([ids(a), ids(b)]).toEqual(found?.host === "a" ? [[id], []] : [[], [id]]);
        expect(await left(b)).toBe(0);
        return found;
      }, 5000);
      expect(owner?.epoch).toBe(owner?.host === "a" ? 1 : 2);
      expect(await wake(world.host(owner?.host ?? ""), id)).toBe(nonce);
      expect(world.mostPerMachine).toBe(1);
    },
  );
});
