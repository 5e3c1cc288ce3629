/** After a restore of the directory, an older copy of a machine goes its own way: the newer one is not lost to it. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { MachineDependencies } from "../../../machines/src/dependencies.ts";
import {
  giveTo,
  ownerIn,
  putToSleep,
  restoreDirectory,
  runOn,
  wakeOn,
} from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS } from "../../src/keys.ts";
import { dropCopy } from "../../src/ownership/drop.ts";

/** For what waits for the next try of a host, which is seconds away. */
const TRIES = { timeout: 20_000, interval: 50 };
let world: ClusterWorld;
let [a, b, c]: TestHost[] = [];
let id: string;
let nonce: string;

const stateOn = (host: TestHost | undefined) => host?.platform.machines.get("shop", id).record.state;
const quarantined = ({ world: { folder } }: TestHost) => readdir(join(folder, "quarantine")).catch(() => []);
const disputes = ({ ownership }: TestHost) => ownership.disputes.list();

/** The machine moved from a to b, where it runs. Host a died before it gave up its copy, and the backup is from before. */
beforeEach(async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  [a, b, c] = ["a", "b", "c"].map((name) => world.host(name));
  ({ id, nonce } = await runOn(a as TestHost));
  await putToSleep(a as TestHost, id);
  const before = (await world.directory.list("/hib/")).entries;
  const mortality = new Mortality();
  await a?.restart({ mortality });
  mortality.arm("custody.takeAway", "before");
  const moved = a?.moves.source.move(id, { to: "b", cold: false }, never()).catch(() => {});
  await Promise.race([mortality.death.promise, moved]);
  expect(await wakeOn(b as TestHost, id)).toBe(nonce);
  await restoreDirectory(world, before);
  await vi.waitFor(() => expect(stateOn(b)).toBe("suspended"), TRIES);
});

afterEach(async () => {
  await world.dispose();
});

test.each(["runs on", "is restarted before"])(
  "a newer copy runs again after the older one was evacuated and destroyed, and its platform %s",
  async (what) => {
    const [newer, other] = [b as TestHost, c as TestHost];
    // Now both have the same epoch.
    await giveTo(world, { id, host: "c", evacuated: { from: "a", at: new Date().toISOString(), ran: true } });
    await vi.waitFor(() => expect(other.world.host.of(id)).toHaveLength(1), TRIES);
    if (what === "is restarted before") await newer.stop();
    // As the message says.
    expect(disputes(newer).every(({ reason }) => reason.includes(`machine destroy ${id}`))).toBe(true);
    other.platform.machines.destroy("shop", id, { force: true });
    await vi.waitFor(async () => expect((await ownerIn(world, id))?.host).not.toBe("c"), TRIES);
    if (what === "is restarted before") await newer.restart();
    await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 3 }), TRIES);
    await vi.waitFor(() => expect(disputes(newer)).toEqual([]), TRIES);
    if (what === "is restarted before") await wakeOn(newer, id);
    await vi.waitFor(() => expect(newer.world.host.guest(id)?.request()?.nonce).toBe(nonce), TRIES);
    expect(newer.platform.machines.get("shop", id).record).not.toHaveProperty("disputed");
    expect(await quarantined(newer)).toEqual([]);
    expect(world.mostPerMachine).toBe(1);
  },
);

test("a newer copy is kept, also by the next platform, when the older one gets a newer epoch", async () => {
  const [older, newer, other] = [a as TestHost, b as TestHost, c as TestHost];
  await older.restart();
  await older.moves.source.move(id, { to: "c", cold: false }, never());
  await other.moves.source.move(id, { to: "a", cold: false }, never());
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 3 });
  await newer.restart();
  await vi.waitFor(() =>
    expect(disputes(newer)).toMatchObject([{ reason: expect.stringContaining("continues an older copy") }]),
  );
  expect(stateOn(newer)).toBe("suspended");
  expect(() => newer.platform.machines.start("shop", id)).toThrow(/does not start/);
  older.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 4 }), TRIES);
  await vi.waitFor(() => expect(disputes(newer)).toEqual([]), TRIES);
  expect(await wakeOn(newer, id)).toBe(nonce);
  expect(await quarantined(newer)).toEqual([]);
  // This one counts: it is gone for good.
  newer.platform.machines.destroy("shop", id, { force: true });
  await vi.waitFor(async () => expect(await world.directory.get(`${KEYS.machines}${id}`)).toBeUndefined(), TRIES);
});

test("the older copy is not moved to the host of the newer one, which does not give that up, and the reason is told", async () => {
  const older = a as TestHost;
  await older.restart();
  const moved = older.moves.source.move(id, { to: "b", cold: false }, never());
  await expect(moved).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/Host b keeps another copy of machine \w+, which is disputed.*Choose another host/),
    // As every host that does not fit, so that a drain asks the next one.
    details: { host: "b", reason: "disputed" },
  });
  expect(await ownerIn(world, id)).toMatchObject({ host: "a" });
  expect(disputes(b as TestHost)).toHaveLength(1);
});

test("the newer copy can be given up for the older one, but only while its host is there and has one", async () => {
  const [older, newer] = [a as TestHost, b as TestHost];
  const drop = () => newer.machines.drop(id, never());
  await expect(drop()).rejects.toMatchObject({ code: "host_unreachable" });
  expect(stateOn(newer)).toBe("suspended");
  await older.restart();
  expect(await wakeOn(older, id)).toBe(nonce);
  await drop();
  await vi.waitFor(() => expect(disputes(newer)).toEqual([]), TRIES);
  expect(newer.platform.custody.stores(id)).toBe(false);
  expect(await quarantined(newer)).toEqual([`${id}-2`]);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  // It may even go where the other copy was.
  await older.moves.source.move(id, { to: "b", cold: false }, never());
  await newer.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  expect(newer.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  await expect(drop()).rejects.toThrow(/Nothing was changed: host b keeps no disputed copy/);
  expect(world.mostPerMachine).toBe(1);
});

test("the last copy of a machine is not given up", async () => {
  const [newer, other] = [b as TestHost, c as TestHost];
  // The directory gives it to a host that has nothing of it, and that does not look at its machines.
  other.machines.close();
  await giveTo(world, { id, host: "c", epoch: 1 });
  await expect(newer.machines.drop(id, never())).rejects.toThrow(/Nothing was changed: host c has no copy of machine/);
  expect(newer.platform.custody.stores(id)).toBe(true);
});

test("a copy that its host is destroying is not one to continue with", async () => {
  const [older, newer] = [a as TestHost, b as TestHost];
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
  older.platform.machines.destroy("shop", id, { force: true });
  expect(stateOn(older)).toBe("destroying");
  try {
    const drop = newer.machines.drop(id, never());
    await expect(drop).rejects.toThrow(/Nothing was changed: host a has no copy of machine \w+ to continue with/);
    expect(stateOn(newer)).toBe("suspended");
  } finally {
    removal.resolve();
  }
  await vi.waitFor(() => expect(newer.world.host.guest(id)?.request()?.nonce).toBe(nonce), TRIES);
  expect(await quarantined(newer)).toEqual([]);
});

test("a machine that is its host's again before the other one has answered is not given up", async () => {
  const [older, newer] = [a as TestHost, b as TestHost];
  await older.restart();
  const { cluster, platform } = newer;
  const call = async () => {
    const has = older.moves.target.has(id);
    older.platform.machines.destroy("shop", id, { force: true });
    // It ran when the dispute began, and so it runs again.
    await vi.waitFor(() => expect(newer.world.host.guest(id)?.request()?.nonce).toBe(nonce), TRIES);
    return has;
  };
  const { disputes: all } = newer.ownership;
  const drop = dropCopy(id, { cluster, custodian: platform.custody, disputes: all, call }, never());
  await expect(drop).rejects.toMatchObject({ code: "aborted", message: expect.stringMatching(/changed hands/) });
  expect(newer.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
  expect(await quarantined(newer)).toEqual([]);
});
