/**
 * Moves whose outcome the host that sends cannot find out: the machine runs on one host, with its newest self.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import { giveTo, ownerIn, putToSleep, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS, type MoveRecord } from "../../src/keys.ts";
import { FRAMES, frame } from "../../src/moves/frames.ts";
import { announce, callOff, commit } from "../../src/moves/intent.ts";
import { filesOf, pack } from "../../src/moves/pack.ts";
import type { MoveProgress } from "../../src/moves/source.ts";

let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

/** Moves the machine to b, and cuts a off in the moment in which b makes it its own. */
async function moveUnheard(a: TestHost, id: string): Promise<{ ended: Promise<unknown> }> {
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "commit") a.cut(true);
  };
  const ended = a.moves.source.move(id, { to: "b", cold: false, onProgress }, never()).catch((error: unknown) => error);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b" }), 5000);
  await vi.waitFor(() => world.host("b").platform.machines.get("shop", id), 5000);
  return { ended };
}

/** The directory loses what it knows of machines. */
async function loseMachines(): Promise<void> {
  const { entries } = await world.directory.list("/hib/");
  const gone = entries.filter(({ key }) => !/\/(apps|members|hosts)\//.test(key));
  await world.directory.transact(
    [],
    gone.map(({ key }) => ({ key, value: null })),
  );
}

const quarantined = ({ world: { folder } }: TestHost) => readdir(join(folder, "quarantine")).catch(() => []);

test("a platform that ends before it knows does not start the machine that ran", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  // Its lease ended, too: what it knew of its machines is void, and a start would ask.
  const { ended } = await moveUnheard(a, id);
  a.lease.set("live", { anew: true });
  expect(await wakeOn(b, id)).toBe(nonce);
  await a.stop();
  expect(await ended).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("on host b is not known"),
  });
  expect(a.world.host.of(id)).toEqual([]);
  expect(a.world.store.machines.events(id, 1)).toMatchObject([{ type: "captured" }]);
  expect(world.mostPerMachine).toBe(1);
});

test("while it is not known, nothing starts the machine here", async () => {
  world = await newClusterWorld(["a", "b"]);
  const a = world.host("a");
  const { id } = await runOn(a);
  await putToSleep(a, id);
  const { ended } = await moveUnheard(a, id);
  expect(a.ownership.refusal(id)).toMatchObject({ code: "moved" });
  a.cut(false);
  expect(await ended).toBeUndefined();
});

test("a machine that was not moved may start here again", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "copy") void b.stop();
  };
  await expect(a.moves.source.move(id, { to: "b", cold: false, onProgress }, never())).rejects.toThrow();
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a machine does not come back over its older copy, and comes back once that is given up", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const { ended } = await moveUnheard(a, id);
  expect(await wakeOn(b, id)).toBe(nonce);
  const onB = b.world.host.guest(id)?.request();
  await putToSleep(b, id);
  // Others reach a again, while a itself asks the directory a second later only.
  const asked = vi.spyOn(a.cluster.directory, "get");
  await vi.waitFor(() => expect(asked.mock.calls.length).toBeGreaterThanOrEqual(2), 5000);
  a.cut(false);
  await expect(b.moves.source.move(id, { to: "a", cold: false }, never())).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringContaining("older copy"),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 });
  expect(await ended).toBeUndefined();
  await b.moves.source.move(id, { to: "a", cold: false }, never());
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 });
  expect(a.platform.machines.get("shop", id).record.epoch).toBe(3);
  await wakeOn(a, id);
  const after = a.world.host.guest(id)?.request();
  expect(after?.nonce).toBe(nonce);
  expect(after?.count).toBeGreaterThan(onB?.count ?? 0);
});

test("a machine that was given to a third host during its move keeps its files in quarantine", async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  const a = world.host("a");
  const { id } = await runOn(a);
  await putToSleep(a, id);
  let given: Promise<void> | undefined;
  const evacuated = { from: "a", at: new Date().toISOString(), ran: false };
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "copy") given ??= giveTo(world, { id, host: "c", evacuated });
  };
  const moved = a.moves.source.move(id, { to: "b", cold: false, onProgress }, never());
  await expect(moved).rejects.toMatchObject({ code: "aborted", message: expect.stringContaining("given to host c") });
  await given;
  expect(await ownerIn(world, id)).toMatchObject({ host: "c", epoch: 2 });
  expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
  expect(await quarantined(a)).toEqual([`${id}-1`]);
});

test("what arrived on a host that is lost before it took it in goes to quarantine there", async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id } = await runOn(a);
  await putToSleep(a, id);
  const mortality = new Mortality();
  await b.restart({ mortality });
  mortality.arm("arrivals.place", "before");
  const moved = a.moves.source.move(id, { to: "b", cold: false }, never()).catch(() => {});
  await mortality.death.promise;
  await moved;
  await giveTo(world, { id, host: "c", evacuated: { from: "b", at: new Date().toISOString(), ran: false } });
  await b.restart();
  await vi.waitFor(async () => expect(await quarantined(b)).toEqual([`${id}-2`]), 5000);
  expect(await readdir(join(b.world.folder, "quarantine", `${id}-2`))).toContain("snapshots");
});

test("an attempt that is given up late does not call off the next one", async () => {
  world = await newClusterWorld(["a", "b"]);
  const { id } = await runOn(world.host("a"));
  const { directory } = world;
  const intent = { from: "a", to: "b", startedAt: new Date().toISOString() };
  await announce(id, { ...intent, attempt: "first" }, directory);
  await announce(id, { ...intent, attempt: "second" }, directory);
  await callOff(id, { host: "b", epoch: 1, attempt: "first" }, directory);
  const entry = await directory.get(`${KEYS.moves}${id}`);
  expect(JSON.parse(entry?.value ?? "{}") as MoveRecord).toMatchObject({ attempt: "second" });
  expect(await commit(id, { ...intent, epoch: 1, attempt: "second" }, directory)).toBe(true);
  await vi.waitFor(() => expect(world.host("a").platform.machines.list("shop")).toEqual([]), 5000);
});

test("a machine that the directory loses in the middle of its move is kept, and claimed again", async () => {
  world = await newClusterWorld(["a", "b"]);
  const a = world.host("a");
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  let lost: Promise<unknown> | undefined;
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "copy") lost ??= loseMachines();
  };
  await expect(a.moves.source.move(id, { to: "b", cold: false, onProgress }, never())).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringContaining("was it restored from a backup?"),
  });
  await lost;
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 }), 5000);
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a machine that the directory loses while it is taken in is the other host's", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const { arrivals } = b.platform;
  const place = arrivals.place.bind(arrivals);
  vi.spyOn(arrivals, "place").mockImplementation(async (...all) => {
    await loseMachines();
    await place(...all);
  });
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  expect(a.platform.machines.list("shop")).toEqual([]);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 }), 20_000);
  expect(await wakeOn(b, id)).toBe(nonce);
});

test("a machine whose move a restored directory has forgotten once it arrived runs on the other host only", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  const before = await world.directory.get(`${KEYS.machines}${id}`);
  const { target } = b.moves;
  const receive = target.receive.bind(target);
  // Once it is taken in, and before b says so.
  const receiving = vi.spyOn(target, "receive").mockImplementationOnce(async (...all) => {
    await receive(...all);
    await world.directory.transact([], [{ key: before?.key ?? "", value: before?.value ?? null }]);
  });
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  expect(receiving).toHaveBeenCalledOnce();
  expect(a.platform.machines.list("shop")).toEqual([]);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 }), 20_000);
  await b.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 }).catch(() => wakeOn(b, id));
  expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine of which a file is lost on the way stays where it was", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id } = await runOn(a);
  await putToSleep(a, id);
  const { record } = a.platform.machines.get("shop", id);
  const intent = { from: "a", to: "b", attempt: "one", startedAt: new Date().toISOString() };
  const papers = { record, taken: null, from: "a", epoch: 1, attempt: "one", history: [], volumes: [] };
  await announce(id, intent, world.directory);
  const folder = join(a.world.folder, "machines", id);
  const { paths } = await filesOf(folder, record);
  async function* stream() {
    yield frame(FRAMES.papers, Buffer.from(JSON.stringify(papers)));
    const signal = never();
    for await (const piece of pack([{ folder, paths: paths.slice(1) }], { signal, onBytes: () => {} }))
      yield frame(FRAMES.data, piece);
    yield frame(FRAMES.end, Buffer.from(JSON.stringify({ files: paths.length })));
  }
  await expect(b.moves.target.receive(id, stream(), never())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`${paths.length - 1} of its ${paths.length} files have arrived`),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(await readdir(join(b.world.folder, "incoming"))).toEqual([]);
});

test("a machine whose snapshot has no manifest stays where it was", async () => {
  world = await newClusterWorld(["a", "b"]);
  const a = world.host("a");
  const { id } = await runOn(a);
  await putToSleep(a, id);
  const folder = join(a.world.folder, "machines", id);
  const manifest = (await readdir(folder, { recursive: true })).find((path) => path.endsWith("manifest.json")) ?? "";
  await rename(join(folder, manifest), join(folder, "elsewhere.json"));
  await expect(a.moves.source.move(id, { to: "b", cold: false }, never())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("its snapshot has no manifest"),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(existsSync(folder)).toBe(true);
});

test("a host that has built the same image with another result does not get the machine's memory", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  b.world.images.salt = "built by another version of the tools: ";
  await expect(a.moves.source.move(id, { to: "b", cold: false, onProgress: () => {} }, never())).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/image_changed: .* It stays where it was\. .*--cold/),
  });
  expect(await wakeOn(a, id)).toBe(nonce);
  await putToSleep(a, id);
  await a.moves.source.move(id, { to: "b", cold: true, onProgress: () => {} }, never());
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
});
