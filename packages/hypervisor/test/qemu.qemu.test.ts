/**
 * @module-tag again
 */
import { expect, onTestFinished, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { describeHypervisor } from "./conformance.ts";
import { openQemu } from "./qemu-harness.ts";

describeHypervisor("QEMU", openQemu, { moments: longOr(60, 10) });

test("a QEMU of which nobody knows any more does not keep its machine from starting: it is ended", async () => {
  const harness = await openQemu();
  onTestFinished(() => harness.dispose());
  const spec = await harness.newSpec();
  const signal = new AbortController().signal;
  const orphan = await harness.hypervisor().boot(spec, signal);
  orphan.release();
  const hypervisor = harness.hypervisor();
  const vmm = await hypervisor.boot(spec, signal);
  onTestFinished(() => vmm.kill());
  expect((await hypervisor.find()).map(({ pid }) => pid)).toEqual([vmm.ref.pid]);
});

test("a QEMU that does not start says why, in its own words", async () => {
  const harness = await openQemu();
  onTestFinished(() => harness.dispose());
  const spec = await harness.newSpec();
  const starting = harness.hypervisor().boot({ ...spec, memoryMb: 1 }, new AbortController().signal);
  await expect(starting).rejects.toThrow(/^QEMU did not start \(.*initrd is too large.*\)\. Its output is in /);
});
