/** Machines whose VMM was killed and does not end are not copied: it may still write to their disks. */
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test } from "vitest";
import { giveTo, ownerIn, putToSleep, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld } from "../../../platform/test/helpers/cluster-world.ts";

const HELD = /was killed and has not ended.*neither started nor moved/;
let world: ClusterWorld;

afterEach(async () => {
  for (const { world: own } of world.hosts.values())
    for (const { ref } of own.host.processes.values()) own.host.letGo(ref.machineId);
  await world.dispose();
});

test("a machine whose VMM does not end is not moved, and is moved once it has ended", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  a.world.host.holding.add(id);
  await putToSleep(a, id);
  for (const cold of [false, true])
    await expect(a.moves.source.move(id, { to: "b", cold }, never())).rejects.toThrow(HELD);
  expect((await ownerIn(world, id))?.host).toBe("a");
  a.world.host.letGo(id);
  await a.moves.source.move(id, { to: "b", cold: false }, never());
  expect(await wakeOn(b, id)).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose VMM does not end when it is suspended for its move stays, with its memory", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id, nonce } = await runOn(a);
  a.world.host.holding.add(id);
  await expect(a.moves.source.move(id, { to: "b", cold: false }, never())).rejects.toThrow(HELD);
  expect((await ownerIn(world, id))?.host).toBe("a");
  expect(b.world.host.processes.size).toBe(0);
  // It ran before, so it is started again, which fails for the same reason.
  await expect.poll(() => a.platform.machines.get("shop", id).record.state).toBe("failed");
  a.world.host.letGo(id);
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("files of a machine that another host has now go to quarantine only after its VMM has ended", async () => {
  world = await newClusterWorld(["a", "b"]);
  const a = world.host("a");
  const { id } = await runOn(a);
  a.world.host.holding.add(id);
  await giveTo(world, { id, host: "b" });
  await expect.poll(() => a.world.host.of(id).map(({ held }) => held)).toEqual([true]);
  expect(a.platform.custody.stores(id)).toBe(true);
  a.world.host.letGo(id);
  a.ownership.look(id);
  await expect.poll(() => a.platform.custody.stores(id), { timeout: 10_000 }).toBe(false);
});
