import { expect, onTestFinished, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { describeHypervisor } from "./conformance.ts";
import { openQemu } from "./qemu-harness.ts";

describeHypervisor("QEMU", openQemu, { moments: longOr(60, 10) });

test("a QEMU that does not start says why, in its own words", async () => {
  const harness = await openQemu();
  onTestFinished(() => harness.dispose());
  const spec = await harness.newSpec();
  const starting = harness.hypervisor().boot({ ...spec, memoryMb: 1 }, new AbortController().signal);
  await expect(starting).rejects.toThrow(/^QEMU did not start \(.*initrd is too large.*\)\. Its output is in /);
});
