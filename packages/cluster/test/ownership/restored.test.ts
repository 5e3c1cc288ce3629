/** The cluster's directory was restored from an older backup: nothing is lost, and nothing runs twice. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import {
  giveTo,
  ownerIn,
  putToSleep,
  restoreDirectory,
  runOn,
  wakeOn,
} from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import type { Entry } from "../../src/contract.ts";
import { KEYS } from "../../src/keys.ts";

/** For what waits for the next try of a host, which is seconds away. */
const TRIES = { timeout: 20_000, interval: 50 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

const ids = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
const stateOn = ({ platform }: TestHost, id: string) => platform.machines.get("shop", id).record.state;
const quarantined = ({ world: { folder } }: TestHost) => readdir(join(folder, "quarantine")).catch(() => []);
const backup = async () => (await world.directory.list("/hib/")).entries;
const disputes = ({ ownership }: TestHost) => ownership.disputes.list();

const restore = (before: readonly Entry[]) => restoreDirectory(world, before);

/** The machine moved from a to b, where it runs; a was killed before it had given up its copy. */
async function movedWithAnOldCopy(): Promise<{ id: string; nonce: string; before: Entry[] }> {
  const a = world.host("a");
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const before = [...(await backup())];
  const mortality = new Mortality();
  await a.restart({ mortality });
  mortality.arm("custody.takeAway", "before");
  const moved = a.moves.source.move(id, { to: "b", cold: false }, never()).catch(() => {});
  await Promise.race([mortality.death.promise, moved]);
  expect(await wakeOn(world.host("b"), id)).toBe(nonce);
  return { id, nonce, before };
}

test("machines that were created or moved since are claimed again by the hosts that have them", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const before = await backup();
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  const { record: late } = await b.platform.machines.create("shop", { name: "late", config: SMALL, skipLaunch: true });
  await a.stop();
  await b.stop();
  await restore(before);
  await b.restart();
  expect(ids(b).toSorted()).toEqual([id, late.id].toSorted());
  await vi.waitFor(async () => expect(await ownerIn(world, late.id)).toMatchObject({ host: "b", epoch: 1 }), TRIES);
  expect(disputes(b)).toMatchObject([
    { machine: id, reason: expect.stringContaining("restored from an older backup") },
  ]);
  expect(() => b.platform.machines.start("shop", id)).toThrow(/gives it to host a with epoch 1/);
  // Host a has nothing of it, and gives the claim back: then b's is the newest.
  await a.restart();
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 }), TRIES);
  await vi.waitFor(() => expect(disputes(b)).toEqual([]));
  expect(await wakeOn(b, id)).toBe(nonce);
  expect(ids(a)).toEqual([]);
  expect(await quarantined(b)).toEqual([]);
});

test("a directory that has lost all machines gets them back from hosts that run on, with their guests", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const before = await backup();
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  expect(await wakeOn(b, id)).toBe(nonce);
  const { record } = await a.platform.machines.create("shop", { name: "two", config: SMALL });
  await a.platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
  await restore(before);
  await vi.waitFor(async () => {
    expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2, name: "one" });
    expect(await ownerIn(world, record.id)).toMatchObject({ host: "a", epoch: 1, address: record.address });
  }, TRIES);
  expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect([stateOn(b, id), stateOn(a, record.id)]).toEqual(["running", "running"]);
  // Its name is taken again, too.
  await expect(b.platform.machines.create("shop", { name: "two", config: SMALL })).rejects.toMatchObject({
    code: "already_exists",
  });
  expect(world.mostPerMachine).toBe(1);
});

test("a machine that went there and back since is as it was", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const before = await backup();
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  await b.moves.source.move(id, { to: "a", cold: false }, never());
  await restore(before);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 }), TRIES);
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("of a newer and an older copy, only one runs, and the newer one runs again after the older one is destroyed", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce, before } = await movedWithAnOldCopy();
  await restore(before);
  // The directory gives it to a, which is down: b does not wait for it to come back.
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("suspended"), TRIES);
  expect(disputes(b)).toMatchObject([{ machine: id }]);
  await a.restart();
  expect(await wakeOn(a, id)).toBe(nonce);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(ids(b)).toEqual([id]);
  // As the message says.
  const reasons = disputes(b)
    .map(({ reason }) => reason)
    .join();
  expect(reasons).toContain(`hibernaut machine destroy ${id} --app shop --force --no-wait`);
  a.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 }), TRIES);
  // It ran there, and so it runs again.
  await b.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine that is starting when it becomes disputed is set aside as well", async () => {
  world = await newClusterWorld(["b"]);
  const b = world.host("b");
  const { id } = await runOn(b);
  await putToSleep(b, id);
  const held = Promise.withResolvers<void>();
  b.world.host.hold.restore = held.promise;
  b.platform.machines.start("shop", id);
  const aside = b.platform.custody.setAside(id, "the cluster directory gives it to host a");
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("starting"));
  delete b.world.host.hold.restore;
  held.resolve();
  expect(await aside).toBe(true);
  expect(stateOn(b, id)).toBe("suspended");
  expect(b.world.host.of(id)).toEqual([]);
});

test("a machine that rested only after its host had given up waiting runs again when the dispute is over", async () => {
  world = await newClusterWorld(["a", "b"]);
  const b = world.host("b");
  const { id, nonce, before } = await movedWithAnOldCopy();
  const { custody } = b.platform;
  const setAside = custody.setAside.bind(custody);
  vi.spyOn(custody, "setAside").mockImplementationOnce(async (...all) => {
    await setAside(...all);
    throw new Error("it did not come to rest in time");
  });
  await restore(before);
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("suspended"), TRIES);
  await vi.waitFor(() => expect(custody.setAside).toHaveBeenCalledTimes(2), TRIES);
  const a = world.host("a");
  await a.restart();
  a.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(() => expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce), TRIES);
  const [started] = b.platform.custody
    .history(id)
    .filter(({ type }) => type === "start")
    .slice(-1);
  expect(started?.details).toMatchObject({ by: "dispute" });
  expect(world.mostPerMachine).toBe(1);
});

/** A sleeping machine of host a whose name or address another machine, of host b, got after a restore. */
async function taken(what: "name" | "address") {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const before = await backup();
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const { address } = a.platform.machines.get("shop", id).record;
  await a.stop();
  await restore(before);
  const name = what === "name" ? "one" : "two";
  const { record: other } = await b.platform.machines.create("shop", { name, config: SMALL, skipLaunch: true });
  if (what === "address") {
    // Here, addresses are random.
    const owner = JSON.stringify({ ...(await ownerIn(world, other.id)), address });
    const its = { key: `${KEYS.addresses}${address}`, value: JSON.stringify(other.id) };
    await world.directory.transact([], [{ key: `${KEYS.machines}${other.id}`, value: owner }, its]);
  }
  await a.restart();
  expect(ids(a)).toEqual([id]);
  await vi.waitFor(() =>
    expect(disputes(a)).toMatchObject([
      { machine: id, reason: expect.stringContaining(`hibernaut machine destroy ${other.id} --app shop --force`) },
    ]),
  );
  return { a, b, id, nonce, address, other };
}

test.each(["name", "address"] as const)(
  "a machine whose %s another one got since waits until that one is destroyed",
  async (what) => {
    const { a, b, id, nonce, address, other } = await taken(what);
    b.platform.machines.destroy("shop", other.id, { force: true });
    await vi.waitFor(
      async () => expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1, address }),
      TRIES,
    );
    expect(await wakeOn(a, id)).toBe(nonce);
  },
);

test.each(["name", "address"] as const)(
  "a machine whose %s another one got since can be given up for that one",
  async (what) => {
    const { a, b, id, other } = await taken(what);
    await a.machines.drop(id, never());
    await vi.waitFor(() => expect(disputes(a)).toEqual([]), TRIES);
    expect(ids(a)).toEqual([]);
    expect(await readdir(join(a.world.folder, "quarantine"))).toEqual([`${id}-1`]);
    expect(ids(b)).toEqual([other.id]);
    expect(await ownerIn(world, other.id)).toMatchObject({ host: "b" });
  },
);

test("a machine whose app the backup does not have is claimed once the app is created again", async () => {
  world = await newClusterWorld(["a"]);
  const a = world.host("a");
  const app = (await backup()).find(({ key }) => key === `${KEYS.apps}shop`);
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  await a.stop();
  const without = (await backup()).filter(({ key }) => /\/(members|hosts)\//.test(key));
  await restore(without);
  await a.restart();
  await vi.waitFor(() =>
    expect(disputes(a)).toMatchObject([{ machine: id, reason: expect.stringMatching(/no app shop.*Create it again/) }]),
  );
  // No other machine is in its place, so that this is the only copy.
  await expect(a.machines.drop(id, never())).rejects.toThrow(/Nothing was changed: .*no app shop/);
  await world.directory.transact([], [{ key: `${KEYS.apps}shop`, value: app?.value ?? "" }]);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 }), TRIES);
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a backup from before an evacuation gives the machine to the host that was lost, and keeps both copies", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  await putToSleep(a, id);
  const before = await backup();
  await a.stop();
  await giveTo(world, { id, host: "b", evacuated: { from: "a", at: new Date().toISOString(), ran: true } });
  await vi.waitFor(() => expect(ids(b)).toEqual([id]), 5000);
  await b.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  await vi.waitFor(async () => expect(await ownerIn(world, id)).not.toHaveProperty("evacuated"), 5000);
  await restore(before);
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("suspended"), TRIES);
  await a.restart();
  expect(await wakeOn(a, id)).toBe(nonce);
  expect([ids(a), ids(b)]).toEqual([[id], [id]]);
  expect(world.mostPerMachine).toBe(1);
});
