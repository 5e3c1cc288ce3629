/**
 * Moves whose outcome the host that sends cannot find out: the machine runs on one host, with its newest self.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { giveTo, ownerIn, putToSleep, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import type { ClusterWorld } from "../../../platform/test/helpers/cluster-world.ts";
import { KEYS, type MoveRecord } from "../../src/keys.ts";
import { announce, callOff, commit } from "../../src/moves/intent.ts";
import type { MoveProgress } from "../../src/moves/source.ts";
import { deletion } from "../../src/stored.ts";
import {
  arriving,
  ask,
  asleep,
  evacuatedFrom,
  fakeHosts,
  killBefore,
  machines,
  move,
  quarantined,
  recordOn,
  sendByHand,
  untilOwner,
  untilState,
} from "../fake-hosts.ts";

/** Moves the machine to b, and cuts a off in the moment in which b makes it its own. */
async function moveUnheard(world: ClusterWorld, id: string): Promise<{ ended: Promise<unknown> }> {
  const [a, b] = [world.host("a"), world.host("b")];
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "commit") a.cut(true);
  };
  const ended = move(a, { id, to: "b", onProgress }).catch((error: unknown) => error);
  await untilOwner(world, id, { host: "b" });
  await vi.waitFor(() => recordOn(b, id), 5000);
  return { ended };
}

/** The directory loses what it knows of machines. */
async function loseMachines({ directory }: ClusterWorld): Promise<void> {
  const { entries } = await directory.list("/hib/");
  const gone = entries.filter(({ key }) => !/\/(apps|members|hosts)\//.test(key)).map(({ key }) => deletion(key));
  await directory.transact([], gone);
}

/** Does something once, when the files of a machine begin to be copied. */
function atCopy<T>(act: () => Promise<T>) {
  const at: { done?: Promise<T>; onProgress(progress: MoveProgress): void } = {
    onProgress({ step }) {
      if (step === "copy") at.done ??= act();
    },
  };
  return at;
}

test("a platform that ends before it knows does not start the machine that ran", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await runOn(a);
  // Its lease ended, too: what it knew of its machines is void, and a start would ask.
  const { ended } = await moveUnheard(world, id);
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
  const { world, a } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  const { ended } = await moveUnheard(world, id);
  expect(a.ownership.refusal(id)).toMatchObject({ code: "moved" });
  a.cut(false);
  expect(await ended).toBeUndefined();
});

test("a machine does not come back over its older copy, and comes back once that is given up", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const { ended } = await moveUnheard(world, id);
  expect(await wakeOn(b, id)).toBe(nonce);
  const onB = ask(b, id);
  await putToSleep(b, id);
  // Others reach a again, while a itself asks the directory a second later only.
  const asked = vi.spyOn(a.cluster.directory, "get");
  await vi.waitFor(() => expect(asked.mock.calls.length).toBeGreaterThanOrEqual(2), 5000);
  a.cut(false);
  await expect(move(b, { id, to: "a" })).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringContaining("older copy"),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 });
  expect(await ended).toBeUndefined();
  await move(b, { id, to: "a" });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 });
  expect(recordOn(a, id).epoch).toBe(3);
  await wakeOn(a, id);
  const after = ask(a, id);
  expect(after?.nonce).toBe(nonce);
  expect(after?.count).toBeGreaterThan(onB?.count ?? 0);
});

test("a machine that was given to a third host during its move keeps its files in quarantine", async () => {
  const { world, a } = await fakeHosts("a", "b", "c");
  const { id } = await asleep(a);
  const evacuated = evacuatedFrom("a");
  const given = atCopy(() => giveTo(world, { id, host: "c", evacuated }));
  const moved = move(a, { id, to: "b", onProgress: given.onProgress });
  await expect(moved).rejects.toMatchObject({ code: "aborted", message: expect.stringContaining("given to host c") });
  await given.done;
  expect(await ownerIn(world, id)).toMatchObject({ host: "c", epoch: 2 });
  expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
  expect(await quarantined(a)).toEqual([`${id}-1`]);
});

test("what arrived on a host that is lost before it took it in goes to quarantine there", async () => {
  const { world, a, b } = await fakeHosts("a", "b", "c");
  const { id } = await asleep(a);
  const { ended } = await killBefore(b, "arrivals.place", () => move(a, { id, to: "b" }));
  await ended;
  await giveTo(world, { id, host: "c", evacuated: evacuatedFrom("b") });
  await b.restart();
  await vi.waitFor(async () => expect(await quarantined(b)).toEqual([`${id}-2`]), 5000);
  expect(await readdir(join(b.world.folder, "quarantine", `${id}-2`))).toContain("snapshots");
});

test("an attempt that is given up late does not call off the next one", async () => {
  const { world, a } = await fakeHosts("a", "b");
  const { directory } = world;
  const { id } = await runOn(a);
  const intent = { from: "a", to: "b", startedAt: new Date().toISOString() };
  await announce(id, { ...intent, attempt: "first" }, directory);
  await announce(id, { ...intent, attempt: "second" }, directory);
  await callOff(id, { host: "b", epoch: 1, attempt: "first" }, directory);
  const entry = await directory.get(`${KEYS.moves}${id}`);
  expect(JSON.parse(entry?.value ?? "{}") as MoveRecord).toMatchObject({ attempt: "second" });
  expect(await commit(id, { ...intent, epoch: 1, attempt: "second" }, directory)).toBe(true);
  await vi.waitFor(() => expect(machines(a)).toEqual([]), 5000);
});

test("a machine that the directory loses in the middle of its move is kept, and claimed again", async () => {
  const { world, a } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const lost = atCopy(() => loseMachines(world));
  await expect(move(a, { id, to: "b", onProgress: lost.onProgress })).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringContaining("was it restored from a backup?"),
  });
  await lost.done;
  await untilOwner(world, id, { host: "a", epoch: 1 });
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a machine that the directory loses while it is taken in is the other host's", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const { arrivals } = b.platform;
  const place = arrivals.place.bind(arrivals);
  vi.spyOn(arrivals, "place").mockImplementation(async (...all) => {
    await loseMachines(world);
    await place(...all);
  });
  await move(a, { id, to: "b" });
  expect(machines(a)).toEqual([]);
  await untilOwner(world, id, { host: "b", epoch: 2 });
  expect(await wakeOn(b, id)).toBe(nonce);
});

test("a machine whose move a restored directory has forgotten once it arrived runs on the other host only", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await runOn(a);
  const before = await world.directory.get(`${KEYS.machines}${id}`);
  const { target } = b.moves;
  const receive = target.receive.bind(target);
  // Once it is taken in, and before b says so.
  const receiving = vi.spyOn(target, "receive").mockImplementationOnce(async (...all) => {
    await receive(...all);
    await world.directory.transact([], [{ key: before?.key ?? "", value: before?.value ?? null }]);
  });
  await move(a, { id, to: "b" });
  expect(receiving).toHaveBeenCalledOnce();
  expect(machines(a)).toEqual([]);
  await untilOwner(world, id, { host: "b", epoch: 2 });
  await untilState(b, id, "running").catch(() => wakeOn(b, id));
  expect(ask(b, id)?.nonce).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine of which a file is lost on the way stays where it was", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  await expect(sendByHand(world, id, { missing: 1 })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/\d+ of its \d+ files have arrived/),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(await arriving(b)).toEqual([]);
});

test("a machine whose snapshot has no manifest stays where it was", async () => {
  const { world, a } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  const folder = join(a.world.folder, "machines", id);
  const manifest = (await readdir(folder, { recursive: true })).find((path) => path.endsWith("manifest.json")) ?? "";
  await rename(join(folder, manifest), join(folder, "elsewhere.json"));
  await expect(move(a, { id, to: "b" })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("its snapshot has no manifest"),
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(existsSync(folder)).toBe(true);
});

test("a host that has built the same image with another result does not get the machine's memory", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  b.world.images.salt = "built by another version of the tools: ";
  await expect(move(a, { id, to: "b" })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/image_changed: .* It stays where it was\. .*--cold/),
  });
  expect(await wakeOn(a, id)).toBe(nonce);
  await putToSleep(a, id);
  await move(a, { id, to: "b", cold: true });
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
});
