/** Machines whose VMM was killed and does not end are not copied: it may still write to their disks. */
import { expect, onTestFinished, test } from "vitest";
import { giveTo, ownerIn, putToSleep, runOn, wakeOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { fakeHosts, move, recordOn } from "../fake-hosts.ts";

const HELD = /was killed and has not ended.*neither started nor moved/;

/** A machine that runs on host a, whose VMM does not end until it is let go. */
async function held() {
  const { world, a, b } = await fakeHosts("a", "b");
  const machine = await runOn(a);
  a.world.host.holding.add(machine.id);
  const letGo = () => a.world.host.letGo(machine.id);
  onTestFinished(letGo);
  return { world, a, b, ...machine, letGo };
}

test("a machine whose VMM does not end is not moved, and is moved once it has ended", async () => {
  const { world, a, b, id, nonce, letGo } = await held();
  await putToSleep(a, id);
  for (const cold of [false, true]) await expect(move(a, { id, to: "b", cold })).rejects.toThrow(HELD);
  expect((await ownerIn(world, id))?.host).toBe("a");
  letGo();
  await move(a, { id, to: "b" });
  expect(await wakeOn(b, id)).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose VMM does not end when it is suspended for its move stays, with its memory", async () => {
  const { world, a, b, id, nonce, letGo } = await held();
  await expect(move(a, { id, to: "b" })).rejects.toThrow(HELD);
  expect((await ownerIn(world, id))?.host).toBe("a");
  expect(b.world.host.processes.size).toBe(0);
  // It ran before, so it is started again, which fails for the same reason.
  await expect.poll(() => recordOn(a, id).state).toBe("failed");
  letGo();
  expect(await wakeOn(a, id)).toBe(nonce);
});

test("files of a machine that another host has now go to quarantine only after its VMM has ended", async () => {
  const { world, a, id, letGo } = await held();
  await giveTo(world, { id, host: "b" });
  await expect.poll(() => a.world.host.of(id).map((vmm) => vmm.held)).toEqual([true]);
  expect(a.platform.custody.stores(id)).toBe(true);
  letGo();
  a.ownership.look(id);
  await expect.poll(() => a.platform.custody.stores(id), { timeout: 10_000 }).toBe(false);
});
