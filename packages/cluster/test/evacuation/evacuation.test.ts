/** A host is lost: its machines start again on others, and it gives them up when it comes back. */
import { expect, test, vi } from "vitest";
import { lostHostsOf, ownerIn, putToSleep } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, hostChange } from "../../../platform/test/helpers/cluster-world.ts";
import { KEYS } from "../../src/keys.ts";
import { put } from "../../src/stored.ts";
import {
  create,
  endGuests,
  fakeHosts,
  machines,
  quarantined,
  RECREATE,
  recordOn,
  stateOn,
  untilState,
  WITH_DATA,
} from "../fake-hosts.ts";

/** The lease of a host ends, and everyone hears of it. */
async function lose({ hosts, directory }: ClusterWorld, host: string): Promise<void> {
  const revision = await directory.transact([], [hostChange(host, false)]);
  for (const { cluster, name } of hosts.values()) if (name !== host) await cluster.view.reached(revision ?? 0);
}

test("a host that is up is not evacuated, nor one that the cluster does not have", async () => {
  const { a } = await fakeHosts("a", "b");
  await expect(a.machines.evacuate("b")).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("hibernaut hosts drain b"),
  });
  await expect(a.machines.evacuate("c")).rejects.toMatchObject({ code: "invalid_argument" });
});

test("the machines of a lost host start again on the others, with the reason, and the host gives them up", async () => {
  const { world, a, b, c } = await fakeHosts("a", "b", "c");
  const awake = await create(b, "awake");
  const sleeps = await create(b, "sleeps");
  await putToSleep(b, sleeps);
  const heavy = await create(b, "heavy", WITH_DATA);
  const published = { epoch: 1, state: "running", route: null, load: 0 };
  await world.directory.transact([], [put(`${KEYS.states}${awake}`, published)]);
  await b.stop();
  endGuests(b);
  await lose(world, "b");
  const evacuated = await a.machines.evacuate("b");
  expect(evacuated.find(({ machine }) => machine === heavy)?.reason).toMatch(/volume/);
  const to = (id: string) => world.host(evacuated.find(({ machine }) => machine === id)?.to ?? "");
  expect(new Set([to(awake).name, to(sleeps).name])).toEqual(new Set(["a", "c"]));
  await vi.waitFor(() => recordOn(to(awake), awake), 5000);
  await untilState(to(awake), awake, "running");
  const lastBoot = { kind: "cold", reason: "host_lost: b" };
  expect(recordOn(to(awake), awake)).toMatchObject({ epoch: 2, name: "awake", lastBoot });
  await vi.waitFor(() => expect(stateOn(to(sleeps), sleeps)).toBe("stopped"), 5000);
  await vi.waitFor(async () => expect(await ownerIn(world, awake)).not.toHaveProperty("evacuated"), 5000);
  // It comes back.
  await world.directory.transact([], [hostChange("b", true)]);
  await b.restart();
  expect(machines(b)).toEqual([heavy]);
  expect(await quarantined(b)).toEqual([`${awake}-1`, `${sleeps}-1`].toSorted());
  expect(world.mostPerMachine).toBe(1);
  expect([...machines(a), ...machines(c)]).toHaveLength(2);
});

test("a machine that its owner lets be recreated is taken after the grace, and ended by the lost host before", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const patient = await create(b, "patient");
  const hasty = await create(b, "hasty", RECREATE);
  let now = 0;
  const watch = lostHostsOf(a, () => now);
  await lose(world, "b");
  await watch.look();
  now = 74_000;
  await watch.look();
  expect(await ownerIn(world, hasty)).toMatchObject({ host: "b", epoch: 1 });
  // The lost host notices by its own clock, long before.
  b.cut(true);
  b.lease.set("lost");
  await vi.waitFor(() => expect(b.world.host.of(hasty)).toEqual([]));
  expect(b.world.host.of(patient)).toHaveLength(1);
  now = 76_000;
  await watch.look();
  expect(await ownerIn(world, hasty)).toMatchObject({ host: "a", epoch: 2 });
  expect(await ownerIn(world, patient)).toMatchObject({ host: "b", epoch: 1 });
  await vi.waitFor(() => expect(stateOn(a, hasty)).toBe("stopped"), 5000);
  a.platform.machines.start("shop", hasty);
  await untilState(a, hasty, "running");
  expect(b.world.host.of(hasty)).toEqual([]);
  expect(world.mostPerMachine).toBe(1);
});

test("a lost host gets its own grace, which may be longer than that of the host that takes its machines", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const id = await create(b, "hasty", RECREATE);
  await world.directory.transact([], [put(`${KEYS.members}b`, { graceMs: 600_000 })]);
  let now = 0;
  const watch = lostHostsOf(a, () => now);
  await lose(world, "b");
  await watch.look();
  now = 614_000;
  await watch.look();
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 1 });
  endGuests(b);
  now = 616_000;
  await watch.look();
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 2 });
});
