/**
 * What `npm run test:kvm` runs: on a host whose KVM works, the tests on QEMU that say most about the hypervisor, and the
 * tour; on any other host the same platform in an emulated machine that has KVM.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** On real KVM: the hypervisor's contract, its clock, and stories of machines. The last one is the tour. */
export const ON_KVM = [
  "packages/platform/test/hypervisor/qemu.qemu.test.ts",
  "packages/platform/test/hypervisor/time-of-day.qemu.test.ts",
  "packages/platform/test/stories/clock.qemu.test.ts",
  "packages/platform/test/stories/cycles.qemu.test.ts",
  "packages/platform/test/stories/drain.qemu.test.ts",
  "packages/platform/test/stories/exec.qemu.test.ts",
  "packages/platform/test/stories/handles.qemu.test.ts",
  "packages/platform/test/stories/kill.qemu.test.ts",
  "packages/platform/test/stories/machine.qemu.test.ts",
  "packages/platform/test/stories/proxy.qemu.test.ts",
  "packages/platform/test/stories/volumes.qemu.test.ts",
  "packages/platform/test/stories/up.qemu.test.ts",
];

/** Where there is no KVM. */
export const NESTED = ["packages/platform/test/nested/nested-kvm.long.test.ts"];

/**
 * Finds out whether KVM runs guests here, which takes seconds, and returns what to run.
 *
 * @param {string} root @param {string} node a Node 24
 * @returns {{files: string[], environment: Record<string, string>, why: string}}
 */
export function planKvm(root, node) {
  const text = execFileSync(node, [join(root, "scripts/lib/kvm-verdict.mjs")], { encoding: "utf8" });
  const { accelerator, reason } = /** @type {{accelerator: string, reason: string}} */ (JSON.parse(text));
  if (accelerator === "kvm") return { files: ON_KVM, environment: { HIBERNAUT_TEST_ACCELERATOR: "kvm" }, why: reason };
  const why = `in an emulated machine, which takes 10 to 20 minutes: ${reason}`;
  return { files: NESTED, environment: {}, why };
}
