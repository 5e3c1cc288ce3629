/** Claims that a host and the directory do not agree on: after a crash, or an answer that came too late. */
import { expect, test, vi } from "vitest";
import { giveTo, ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS } from "../../src/keys.ts";
import { release } from "../../src/ownership/claims.ts";
import { put } from "../../src/stored.ts";
import { asleep, destroy, evacuatedFrom, fakeHosts, machines, recordOn } from "../fake-hosts.ts";

test("a new machine whose address another host took meanwhile gets another one at the next start", async () => {
  const { world, a } = await fakeHosts("a");
  const fatal = new Mortality();
  await a.restart({ wrap: (deps) => fatal.wrap(deps) });
  fatal.arm("ownership.claim", "before");
  const created = a.platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
  await Promise.race([created.catch(() => {}), fatal.death.promise]);
  const { id = "", address = "" } = a.world.store.machines.list()[0] ?? {};
  await world.directory.transact([], [put(`${KEYS.addresses}${address}`, "0ther")]);
  await a.restart();
  const owner = await ownerIn(world, id);
  expect(owner).toMatchObject({ host: "a", epoch: 1 });
  expect(owner?.address).not.toBe(address);
  expect(recordOn(a, id)).toMatchObject({ address: owner?.address, epoch: 1 });
});

test("a machine that was never told its epoch is claimed later, and given up like any other", async () => {
  const { world, a } = await fakeHosts("a", "b");
  const { id } = await runOn(a);
  // As `cluster init` leaves it; and the directory does not answer at the first start.
  await a.stop();
  const stored = a.world.store.machines.get(id);
  if (stored === undefined) throw new Error("it was not stored");
  const { epoch: _none, ...record } = stored;
  a.world.store.machines.update(record);
  a.cut(true);
  await a.restart();
  expect(a.world.host.of(id)).toHaveLength(1);
  a.cut(false);
  a.lease.set("live", { anew: true });
  await vi.waitFor(() => expect(a.world.store.machines.get(id)?.epoch).toBe(1), 10_000);
  await giveTo(world, { id, host: "b" });
  await vi.waitFor(() => expect(a.world.host.of(id)).toEqual([]), 10_000);
});

test("a machine that was destroyed on another host does not come back with the host that had it", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  await a.stop();
  await giveTo(world, { id, host: "b", evacuated: evacuatedFrom("a") });
  await vi.waitFor(() => expect(machines(b)).toEqual([id]), 5000);
  destroy(b, id);
  await vi.waitFor(async () => expect(await ownerIn(world, id)).toBeUndefined(), 5000);
  await a.restart();
  expect(machines(a)).toEqual([]);
  expect(await ownerIn(world, id)).toBeUndefined();
});

test("a claim that was made after everybody had given it up is given back, and its name is free", async () => {
  const { world, a } = await fakeHosts("a");
  const owner = { app: "shop", name: "one", host: "a", epoch: 1, address: "10.0.0.9" };
  const orphan = "00000000000000";
  await world.directory.transact([], [put(`${KEYS.machines}${orphan}`, owner), put(`${KEYS.names}shop/one`, orphan)]);
  await vi.waitFor(async () => expect((await world.directory.list(KEYS.names)).entries).toEqual([]), 5000);
  await a.platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
});

test("a claim that is given back late does not delete the machine that has come back since", async () => {
  const { world, a } = await fakeHosts("a", "b");
  const { id } = await runOn(a);
  const { directory } = world;
  await giveTo(world, { id, host: "b" });
  await giveTo(world, { id, host: "a" });
  const { epoch = 0 } = (await ownerIn(world, id)) ?? {};
  expect(await release(id, { directory, host: "a" }, epoch - 2)).toBe("not ours");
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch });
});
