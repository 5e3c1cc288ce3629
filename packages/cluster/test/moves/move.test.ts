/** Machines move to another host: asleep or awake, and with requests meanwhile. `volumes.test.ts` kills either host at any step. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { ownerIn, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { KEYS } from "../../src/keys.ts";
import type { MoveProgress } from "../../src/moves/source.ts";
import { arriving, ask, asleep, fakeHosts, machines, move, recordOn, untilState } from "../fake-hosts.ts";

describe("a sleeping machine", () => {
  test("wakes on the other host with its memory, its address and its history, and is gone here", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await asleep(a);
    const { address } = recordOn(a, id);
    const steps: MoveProgress[] = [];
    await move(a, { id, to: "b", onProgress: (progress) => void steps.push(progress) });
    expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2, address });
    expect([machines(a), machines(b)]).toEqual([[], [id]]);
    expect(recordOn(b, id)).toMatchObject({ state: "suspended", epoch: 2, address });
    expect(await wakeOn(b, id)).toBe(nonce);
    expect(recordOn(b, id).lastBoot?.kind).toBe("resume");
    const types = b.platform.machines.events("shop", id, 100).map(({ type }) => type);
    expect(types.toReversed().join(" ")).toBe("create start started suspend captured moved_in start started");
    expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
    expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
    expect([...new Set(steps.map(({ step }) => step))].join(" ")).toBe("check precopy suspend copy commit done");
    expect(steps.at(-2)).toMatchObject({ step: "commit", bytes: steps.at(-2)?.totalBytes });
    expect(await arriving(b)).toEqual([]);
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

  test("takes along the lease that a client has on it, which nobody gets on the way", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await asleep(a);
    const { nonce } = a.platform.leases.take("shop", id, { owner: "ci", ttl: 600 });
    const refused: unknown[] = [];
    const onProgress = ({ step }: MoveProgress) => {
      if (step !== "copy") return;
      for (const act of [
        () => a.platform.leases.release("shop", id, nonce),
        () => a.platform.metadata.change("shop", id, { team: "search" }),
      ])
        try {
          act();
        } catch (error) {
          refused.push(error);
        }
    };
    await move(a, { id, to: "b", onProgress });
    expect(refused.length).toBeGreaterThan(1);
    for (const error of refused) expect(error).toMatchObject({ code: "aborted" });
    expect(() => b.platform.leases.requirePassage("shop", id, undefined)).toThrow("Token ci has a lease");
    b.platform.leases.release("shop", id, nonce);
  });

  test("that is asked for meanwhile starts on the other host", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await asleep(a);
    const onProgress = ({ step }: MoveProgress) => {
      if (step === "copy") a.platform.machines.start("shop", id, { by: "proxy" });
    };
    await move(a, { id, to: "b", onProgress });
    await untilState(b, id, "running");
    expect(ask(b, id)?.nonce).toBe(nonce);
  });

  test("refuses what would change it meanwhile", async () => {
    const { a } = await fakeHosts("a", "b");
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
    await move(a, { id, to: "b", onProgress });
    expect(refused).toMatchObject([{ code: "aborted", message: expect.stringContaining("being moved to host b") }]);
  });
});

describe("a running machine", () => {
  test("is suspended first, and runs on with its memory on the other host", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await runOn(a);
    await move(a, { id, to: "b" });
    await untilState(b, id, "running");
    expect(ask(b, id)).toMatchObject({ nonce });
    expect(a.world.host.of(id)).toEqual([]);
    expect(world.mostPerMachine).toBe(1);
  });

  test("finishes its open requests first, while new ones wait, also when it stays in the end", async () => {
    const { a } = await fakeHosts("a", "b");
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
    const refused = move(a, { id, to: "b", signal: abort.signal });
    await vi.waitFor(() => expect(told).toEqual(["held back", "finishing"]));
    abort.abort(new Error("no longer wanted"));
    await expect(refused).rejects.toThrow("no longer wanted");
    expect(told.at(-1)).toBe("given back");
    expect(ask(a, id)?.nonce).toBe(nonce);

    const moved = move(a, { id, to: "b" });
    await vi.waitFor(() => expect(told.at(-1)).toBe("finishing"));
    expect(recordOn(a, id).state).toBe("running");
    requests.resolve();
    await moved;
    expect(told.slice(-3)).toEqual(["held back", "finishing", "given back"]);
  });

  test("on an older CPU is refused before anything happens to it, and moves without its memory", async () => {
    const { a, b } = await fakeHosts("a", "b");
    b.world.identity.cpu_model = "older";
    await b.restart();
    const { id, nonce } = await runOn(a);
    await expect(move(a, { id, to: "b" })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/cpu_model_changed: CPU model was none, is older.*--cold/),
    });
    expect(ask(a, id)?.nonce).toBe(nonce);
    await move(a, { id, to: "b", cold: true });
    await untilState(b, id, "running");
    expect(recordOn(b, id).lastBoot?.kind).toBe("cold");
    expect(ask(b, id)?.nonce).not.toBe(nonce);
  });

  test("runs on here when the other host goes away once its memory is there", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await runOn(a);
    const onProgress = ({ step }: MoveProgress) => {
      if (step === "suspend") void b.stop();
    };
    await expect(move(a, { id, to: "b", onProgress })).rejects.toMatchObject({ code: "host_unreachable" });
    await untilState(a, id, "running");
    expect(ask(a, id)?.nonce).toBe(nonce);
    expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  });
});

test.each([
  ["the host that it is on", "a"],
  ["a host that the cluster does not have", "c"],
])("a move to %s is refused", async (_what, to) => {
  const { a } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  await expect(move(a, { id, to })).rejects.toMatchObject({ code: "invalid_argument" });
});
