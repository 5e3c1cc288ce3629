/** A host is lost: its machines start again on others, and it gives them up when it comes back. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { lostHostsOf } from "../../../platform/test/helpers/cluster-machines.ts";
import {
  type ClusterWorld,
  hostChange,
  newClusterWorld,
  type TestHost,
} from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { KEYS, type OwnerRecord } from "../../src/keys.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

async function ownerOf(id: string): Promise<OwnerRecord> {
  return JSON.parse((await world.directory.get(`${KEYS.machines}${id}`))?.value ?? "{}") as OwnerRecord;
}

async function create({ platform }: TestHost, name: string, config = SMALL): Promise<string> {
  const { record } = await platform.machines.create("shop", { name, config });
  await platform.machines.wait("shop", record.id, ["running"], TIMEOUT);
  return record.id;
}

/** The lease of a host ends, and everyone hears of it. */
async function lose(host: string): Promise<void> {
  const revision = await world.directory.transact([], [hostChange(host, false)]);
  for (const { cluster, name } of world.hosts.values()) if (name !== host) await cluster.view.reached(revision ?? 0);
}

test("a host that is up is not evacuated, nor one that the cluster does not have", async () => {
  world = await newClusterWorld(["a", "b"]);
  const { machines } = world.host("a");
  await expect(machines.evacuate("b")).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("hibernaut hosts drain b"),
  });
  await expect(machines.evacuate("c")).rejects.toMatchObject({ code: "invalid_argument" });
});

test("the machines of a lost host start again on the others, with the reason, and the host gives them up", async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  const [a, b, c] = [world.host("a"), world.host("b"), world.host("c")];
  const awake = await create(b, "awake");
  const sleeps = await create(b, "sleeps");
  b.platform.machines.suspend("shop", sleeps);
  await b.platform.machines.wait("shop", sleeps, ["suspended"], TIMEOUT);
  const heavy = await create(b, "heavy", { ...SMALL, mounts: [{ volume: "data", path: "/data" }] });
  await world.directory.transact(
    [],
    [{ key: `${KEYS.states}${awake}`, value: JSON.stringify({ epoch: 1, state: "running", route: null, load: 0 }) }],
  );
  // The host loses its power: its guests end with it.
  await b.stop();
  for (const id of [awake, sleeps, heavy]) for (const { ref } of b.world.host.of(id)) b.world.host.end(ref);
  await lose("b");
  const evacuated = await a.machines.evacuate("b");
  expect(evacuated.find(({ machine }) => machine === heavy)?.reason).toMatch(/volume/);
  const to = (id: string) => world.host(evacuated.find(({ machine }) => machine === id)?.to ?? "");
  expect(new Set([to(awake).name, to(sleeps).name])).toEqual(new Set(["a", "c"]));
  await vi.waitFor(() => to(awake).platform.machines.get("shop", awake), 5000);
  await to(awake).platform.machines.wait("shop", awake, ["running"], TIMEOUT);
  const { record } = to(awake).platform.machines.get("shop", awake);
  expect(record.lastBoot).toMatchObject({ kind: "cold", reason: "host_lost: b" });
  expect(record).toMatchObject({ epoch: 2, name: "awake" });
  await vi.waitFor(() => expect(to(sleeps).platform.machines.get("shop", sleeps).record.state).toBe("stopped"), 5000);
  await vi.waitFor(async () => expect(await ownerOf(awake)).not.toHaveProperty("evacuated"), 5000);
  // It comes back.
  await world.directory.transact([], [hostChange("b", true)]);
  await b.restart();
  expect(b.platform.machines.list("shop").map(({ record: { id } }) => id)).toEqual([heavy]);
  expect((await readdir(join(b.world.folder, "quarantine"))).sort()).toEqual([`${awake}-1`, `${sleeps}-1`].sort());
  expect(world.mostPerMachine).toBe(1);
  expect(a.platform.machines.list("shop").length + c.platform.machines.list("shop").length).toBe(2);
});

test("a machine that its owner lets be recreated is taken after the grace, and ended by the lost host before", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const patient = await create(b, "patient");
  const hasty = await create(b, "hasty", { ...SMALL, on_host_loss: "recreate" });
  let now = 0;
  const watch = lostHostsOf(a, () => now);
  await lose("b");
  await watch.look();
  now = 74_000;
  await watch.look();
  expect(await ownerOf(hasty)).toMatchObject({ host: "b", epoch: 1 });
  // The lost host notices by its own clock, long before.
  b.cut(true);
  b.lease.set("lost");
  await vi.waitFor(() => expect(b.world.host.of(hasty)).toEqual([]));
  expect(b.world.host.of(patient)).toHaveLength(1);
  now = 76_000;
  await watch.look();
  expect(await ownerOf(hasty)).toMatchObject({ host: "a", epoch: 2 });
  expect(await ownerOf(patient)).toMatchObject({ host: "b", epoch: 1 });
  await vi.waitFor(() => expect(a.platform.machines.get("shop", hasty).record.state).toBe("stopped"), 5000);
  a.platform.machines.start("shop", hasty);
  await a.platform.machines.wait("shop", hasty, ["running"], TIMEOUT);
  expect(b.world.host.of(hasty)).toEqual([]);
  expect(world.mostPerMachine).toBe(1);
});

test("a lost host gets its own grace, which may be longer than that of the host that takes its machines", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const id = await create(b, "hasty", { ...SMALL, on_host_loss: "recreate" });
  await world.directory.transact([], [{ key: `${KEYS.members}b`, value: JSON.stringify({ graceMs: 600_000 }) }]);
  let now = 0;
  const watch = lostHostsOf(a, () => now);
  await lose("b");
  await watch.look();
  now = 614_000;
  await watch.look();
  expect(await ownerOf(id)).toMatchObject({ host: "b", epoch: 1 });
  for (const { ref } of b.world.host.of(id)) b.world.host.end(ref);
  now = 616_000;
  await watch.look();
  expect(await ownerOf(id)).toMatchObject({ host: "a", epoch: 2 });
});
