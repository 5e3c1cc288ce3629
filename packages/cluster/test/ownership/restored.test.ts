/** The cluster's directory was restored from an older backup: nothing is lost, and nothing runs twice. */
import { never } from "@hibernaut/lib/async";
import { expect, test, vi } from "vitest";
import { giveTo, ownerIn, restoreDirectory, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { KEYS } from "../../src/keys.ts";
import { put } from "../../src/stored.ts";
import {
  ask,
  asleep,
  backupOf,
  create,
  destroy,
  disputes,
  evacuatedFrom,
  fakeHosts,
  machines,
  move,
  movedWithAnOldCopy,
  quarantined,
  recordOn,
  stateOn,
  TRIES,
  untilOwner,
  untilSettled,
  untilState,
} from "../fake-hosts.ts";

test("machines that were created or moved since are claimed again by the hosts that have them", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const before = await backupOf(world);
  await move(a, { id, to: "b" });
  const { record: late } = await b.platform.machines.create("shop", { name: "late", config: SMALL, skipLaunch: true });
  await a.stop();
  await b.stop();
  await restoreDirectory(world, before);
  await b.restart();
  expect(machines(b).toSorted()).toEqual([id, late.id].toSorted());
  await untilOwner(world, late.id, { host: "b", epoch: 1 });
  expect(disputes(b)).toMatchObject([
    { machine: id, reason: expect.stringContaining("restored from an older backup") },
  ]);
  expect(() => b.platform.machines.start("shop", id)).toThrow(/gives it to host a with epoch 1/);
  // Host a has nothing of it, and gives the claim back: then b's is the newest.
  await a.restart();
  await untilOwner(world, id, { host: "b", epoch: 2 });
  await untilSettled(b);
  expect(await wakeOn(b, id)).toBe(nonce);
  expect(machines(a)).toEqual([]);
  expect(await quarantined(b)).toEqual([]);
});

test("a directory that has lost all machines gets them back from hosts that run on, with their guests", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const before = await backupOf(world);
  const { id, nonce } = await asleep(a);
  await move(a, { id, to: "b" });
  expect(await wakeOn(b, id)).toBe(nonce);
  const second = await create(a, "two");
  const { address } = recordOn(a, second);
  await restoreDirectory(world, before);
  await vi.waitFor(async () => {
    expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2, name: "one" });
    expect(await ownerIn(world, second)).toMatchObject({ host: "a", epoch: 1, address });
  }, TRIES);
  expect(ask(b, id)?.nonce).toBe(nonce);
  expect([stateOn(b, id), stateOn(a, second)]).toEqual(["running", "running"]);
  // Its name is taken again, too.
  await expect(create(b, "two")).rejects.toMatchObject({ code: "already_exists" });
  expect(world.mostPerMachine).toBe(1);
});

test("a machine that went there and back since is as it was", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const before = await backupOf(world);
  await move(a, { id, to: "b" });
  await move(b, { id, to: "a" });
  await restoreDirectory(world, before);
  await untilOwner(world, id, { host: "a", epoch: 3 });
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a machine that is starting when it becomes disputed is set aside as well", async () => {
  const { b } = await fakeHosts("b");
  const { id } = await asleep(b);
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
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce, before } = await movedWithAnOldCopy(world);
  expect(await wakeOn(b, id)).toBe(nonce);
  const { custody } = b.platform;
  const setAside = custody.setAside.bind(custody);
  vi.spyOn(custody, "setAside").mockImplementationOnce(async (...all) => {
    await setAside(...all);
    throw new Error("it did not come to rest in time");
  });
  await restoreDirectory(world, before);
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("suspended"), TRIES);
  await vi.waitFor(() => expect(custody.setAside).toHaveBeenCalledTimes(2), TRIES);
  await a.restart();
  destroy(a, id);
  await vi.waitFor(() => expect(ask(b, id)?.nonce).toBe(nonce), TRIES);
  const [started] = b.platform.custody
    .history(id)
    .filter(({ type }) => type === "start")
    .slice(-1);
  expect(started?.details).toMatchObject({ by: "dispute" });
  expect(world.mostPerMachine).toBe(1);
});

/** A sleeping machine of host a whose name or address another machine, of host b, got after a restore. */
async function taken(what: "name" | "address") {
  const { world, a, b } = await fakeHosts("a", "b");
  const before = await backupOf(world);
  const { id, nonce } = await asleep(a);
  const { address } = recordOn(a, id);
  await a.stop();
  await restoreDirectory(world, before);
  const name = what === "name" ? "one" : "two";
  const { record: other } = await b.platform.machines.create("shop", { name, config: SMALL, skipLaunch: true });
  if (what === "address") {
    // Here, addresses are random.
    const owner = JSON.stringify({ ...(await ownerIn(world, other.id)), address });
    const its = put(`${KEYS.addresses}${address}`, other.id);
    await world.directory.transact([], [{ key: `${KEYS.machines}${other.id}`, value: owner }, its]);
  }
  await a.restart();
  expect(machines(a)).toEqual([id]);
  await vi.waitFor(() =>
    expect(disputes(a)).toMatchObject([
      { machine: id, reason: expect.stringContaining(`hibernaut machine destroy ${other.id} --app shop --force`) },
    ]),
  );
  return { world, a, b, id, nonce, address, other };
}

test.each(["name", "address"] as const)(
  "a machine whose %s another one got since waits until that one is destroyed",
  async (what) => {
    const { world, a, b, id, nonce, address, other } = await taken(what);
    destroy(b, other.id);
    await untilOwner(world, id, { host: "a", epoch: 1, address });
    expect(await wakeOn(a, id)).toBe(nonce);
  },
);

test.each(["name", "address"] as const)(
  "a machine whose %s another one got since can be given up for that one",
  async (what) => {
    const { world, a, b, id, other } = await taken(what);
    await a.machines.drop(id, never());
    await untilSettled(a);
    expect(machines(a)).toEqual([]);
    expect(await quarantined(a)).toEqual([`${id}-1`]);
    expect(machines(b)).toEqual([other.id]);
    expect(await ownerIn(world, other.id)).toMatchObject({ host: "b" });
  },
);

test("a machine whose app the backup does not have is claimed once the app is created again", async () => {
  const { world, a } = await fakeHosts("a");
  const app = (await backupOf(world)).find(({ key }) => key === `${KEYS.apps}shop`);
  const { id, nonce } = await asleep(a);
  await a.stop();
  const without = (await backupOf(world)).filter(({ key }) => /\/(members|hosts)\//.test(key));
  await restoreDirectory(world, without);
  await a.restart();
  await vi.waitFor(() =>
    expect(disputes(a)).toMatchObject([{ machine: id, reason: expect.stringMatching(/no app shop.*Create it again/) }]),
  );
  // No other machine is in its place, so that this is the only copy.
  await expect(a.machines.drop(id, never())).rejects.toThrow(/Nothing was changed: .*no app shop/);
  await world.directory.transact([], [{ key: `${KEYS.apps}shop`, value: app?.value ?? "" }]);
  await untilOwner(world, id, { host: "a", epoch: 1 });
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("a backup from before an evacuation gives the machine to the host that was lost, and keeps both copies", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await asleep(a);
  const before = await backupOf(world);
  await a.stop();
  await giveTo(world, { id, host: "b", evacuated: evacuatedFrom("a", true) });
  await vi.waitFor(() => expect(machines(b)).toEqual([id]), 5000);
  await untilState(b, id, "running");
  await vi.waitFor(async () => expect(await ownerIn(world, id)).not.toHaveProperty("evacuated"), 5000);
  await restoreDirectory(world, before);
  await vi.waitFor(() => expect(stateOn(b, id)).toBe("suspended"), TRIES);
  await a.restart();
  expect(await wakeOn(a, id)).toBe(nonce);
  expect([machines(a), machines(b)]).toEqual([[id], [id]]);
  expect(world.mostPerMachine).toBe(1);
});
