/** After a restore of the directory, an older copy of a machine goes its own way: the newer one is not lost to it. */
import { never } from "@hibernaut/lib/async";
import { expect, test, vi } from "vitest";
import type { MachineDependencies } from "../../../machines/src/dependencies.ts";
import { giveTo, ownerIn, restoreDirectory, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { KEYS } from "../../src/keys.ts";
import { dropCopy } from "../../src/ownership/drop.ts";
import {
  ask,
  destroy,
  disputes,
  evacuatedFrom,
  fakeHosts,
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

/** The machine moved from a to b, where it runs. Host a died before it gave up its copy, and the backup is from before. */
async function twoCopies() {
  const { world, a: older, b: newer, c: other } = await fakeHosts("a", "b", "c");
  const { id, nonce, before } = await movedWithAnOldCopy(world);
  expect(await wakeOn(newer, id)).toBe(nonce);
  await restoreDirectory(world, before);
  await vi.waitFor(() => expect(stateOn(newer, id)).toBe("suspended"), TRIES);
  return { world, older, newer, other, id, nonce };
}

test.each(["runs on", "is restarted before"])(
  "a newer copy runs again after the older one was evacuated and destroyed, and its platform %s",
  async (what) => {
    const { world, newer, other, id, nonce } = await twoCopies();
    // Now both have the same epoch.
    await giveTo(world, { id, host: "c", evacuated: evacuatedFrom("a", true) });
    await vi.waitFor(() => expect(other.world.host.of(id)).toHaveLength(1), TRIES);
    if (what === "is restarted before") await newer.stop();
    // As the message says.
    const advice = `hibernaut machine destroy ${id} --app shop --force --no-wait`;
    expect(disputes(newer).every(({ reason }) => reason.includes(advice))).toBe(true);
    destroy(other, id);
    await vi.waitFor(async () => expect((await ownerIn(world, id))?.host).not.toBe("c"), TRIES);
    if (what === "is restarted before") await newer.restart();
    await untilOwner(world, id, { host: "b", epoch: 3 });
    await untilSettled(newer);
    if (what === "is restarted before") await wakeOn(newer, id);
    await vi.waitFor(() => expect(ask(newer, id)?.nonce).toBe(nonce), TRIES);
    expect(recordOn(newer, id)).not.toHaveProperty("disputed");
    expect(await quarantined(newer)).toEqual([]);
    expect(world.mostPerMachine).toBe(1);
  },
);

test("a newer copy is kept, also by the next platform, when the older one gets a newer epoch", async () => {
  const { world, older, newer, other, id, nonce } = await twoCopies();
  await older.restart();
  await move(older, { id, to: "c" });
  await move(other, { id, to: "a" });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 });
  await newer.restart();
  await vi.waitFor(() =>
    expect(disputes(newer)).toMatchObject([{ reason: expect.stringContaining("continues an older copy") }]),
  );
  expect(stateOn(newer, id)).toBe("suspended");
  expect(() => newer.platform.machines.start("shop", id)).toThrow(/does not start/);
  destroy(older, id);
  await untilOwner(world, id, { host: "b", epoch: 4 });
  await untilSettled(newer);
  expect(await wakeOn(newer, id)).toBe(nonce);
  expect(await quarantined(newer)).toEqual([]);
  // This one counts: it is gone for good.
  destroy(newer, id);
  await vi.waitFor(async () => expect(await world.directory.get(`${KEYS.machines}${id}`)).toBeUndefined(), TRIES);
});

test("the older copy is not moved to the host of the newer one, which does not give that up, and the reason is told", async () => {
  const { world, older, newer, id } = await twoCopies();
  await older.restart();
  await expect(move(older, { id, to: "b" })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/Host b keeps another copy of machine \w+, which is disputed.*Choose another host/),
    // As every host that does not fit, so that a drain asks the next one.
    details: { host: "b", reason: "disputed" },
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a" });
  expect(disputes(newer)).toHaveLength(1);
});

test("the newer copy can be given up for the older one, but only while its host is there and has one", async () => {
  const { world, older, newer, id, nonce } = await twoCopies();
  const drop = () => newer.machines.drop(id, never());
  await expect(drop()).rejects.toMatchObject({ code: "host_unreachable" });
  expect(stateOn(newer, id)).toBe("suspended");
  await older.restart();
  expect(await wakeOn(older, id)).toBe(nonce);
  await drop();
  await untilSettled(newer);
  expect(newer.platform.custody.stores(id)).toBe(false);
  expect(await quarantined(newer)).toEqual([`${id}-2`]);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  // It may even go where the other copy was.
  await move(older, { id, to: "b" });
  await untilState(newer, id, "running");
  expect(ask(newer, id)?.nonce).toBe(nonce);
  await expect(drop()).rejects.toThrow(/Nothing was changed: host b keeps no disputed copy/);
  expect(world.mostPerMachine).toBe(1);
});

test("the last copy of a machine is not given up", async () => {
  const { world, newer, other, id } = await twoCopies();
  // The directory gives it to a host that has nothing of it, and that does not look at its machines.
  other.machines.close();
  await giveTo(world, { id, host: "c", epoch: 1 });
  await expect(newer.machines.drop(id, never())).rejects.toThrow(/Nothing was changed: host c has no copy of machine/);
  expect(newer.platform.custody.stores(id)).toBe(true);
});

test("a copy that its host is destroying is not one to continue with", async () => {
  const { older, newer, id, nonce } = await twoCopies();
  const removal = Promise.withResolvers<void>();
  const slowly = (deps: MachineDependencies) => {
    const remove = deps.files.remove.bind(deps.files);
    vi.spyOn(deps.files, "remove").mockImplementation(async (machine) => {
      await removal.promise;
      await remove(machine);
    });
    return deps;
  };
  await older.restart({ wrap: slowly });
  destroy(older, id);
  expect(stateOn(older, id)).toBe("destroying");
  try {
    const drop = newer.machines.drop(id, never());
    await expect(drop).rejects.toThrow(/Nothing was changed: host a has no copy of machine \w+ to continue with/);
    expect(stateOn(newer, id)).toBe("suspended");
  } finally {
    removal.resolve();
  }
  await vi.waitFor(() => expect(ask(newer, id)?.nonce).toBe(nonce), TRIES);
  expect(await quarantined(newer)).toEqual([]);
});

test("a machine that is its host's again before the other one has answered is not given up", async () => {
  const { world, older, newer, id, nonce } = await twoCopies();
  await older.restart();
  const { cluster, platform } = newer;
  const call = async () => {
    const has = older.moves.target.has(id);
    destroy(older, id);
    // It ran when the dispute began, and so it runs again.
    await vi.waitFor(() => expect(ask(newer, id)?.nonce).toBe(nonce), TRIES);
    return has;
  };
  const { disputes: all } = newer.ownership;
  const drop = dropCopy(id, { cluster, custodian: platform.custody, disputes: all, call }, never());
  await expect(drop).rejects.toMatchObject({ code: "aborted", message: expect.stringMatching(/changed hands/) });
  expect(ask(newer, id)?.nonce).toBe(nonce);
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
  expect(await quarantined(newer)).toEqual([]);
});
