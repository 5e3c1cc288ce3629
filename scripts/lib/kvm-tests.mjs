/**
 * What `npm run test:kvm` runs: on a host whose KVM works, the tests on QEMU that say most about it, and the tour; on any
 * other host, the platform in an emulated machine that has KVM, and these tests there.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const TEST = "packages/platform/test";

/**
 * What KVM could break: the clocks after a resume, snapshots that belong to another accelerator, memory that KVM writes to
 * by itself, warm sleep, ends of QEMU. With each file, parts of the names of the tests that run in the emulated machine,
 * where a cold start takes up to two minutes: none means all of them.
 *
 * @type {Record<string, string[]>}
 */
export const STORIES = {
  [`${TEST}/stories/warm.qemu.test.ts`]: [],
  [`${TEST}/stories/prewarm.qemu.test.ts`]: [],
  [`${TEST}/stories/machine.qemu.test.ts`]: [
    "a start while suspending cancels the suspend",
    "a wake notes which memory it needed",
    "one changed bit, found because the host was restarted",
    "a machine that is stopped ends its app",
  ],
  [`${TEST}/stories/kill.qemu.test.ts`]: [
    "running: the guest never notices",
    "suspended: it resumes where it stopped",
    "suspending, after",
    "resuming, after",
    "running, and its guest dies meanwhile",
  ],
  // Last, because emulation in the emulated machine is slowest.
  [`${TEST}/stories/accelerator.qemu.test.ts`]: [],
};

/** On real KVM: the stories, and more that would take too long in there. The last one is the tour. */
export const ON_KVM = [
  "packages/hypervisor/test/qemu.qemu.test.ts",
  "packages/hypervisor/test/time-of-day.qemu.test.ts",
  ...Object.keys(STORIES),
  `${TEST}/stories/clock.qemu.test.ts`,
  `${TEST}/stories/drain.qemu.test.ts`,
  `${TEST}/stories/exec.qemu.test.ts`,
  `${TEST}/stories/handles.qemu.test.ts`,
  `${TEST}/stories/proxy.qemu.test.ts`,
  `${TEST}/stories/torture.qemu.test.ts`,
  `${TEST}/stories/volumes.qemu.test.ts`,
  `${TEST}/stories/up.qemu.test.ts`,
];

/** Where there is no KVM. */
export const NESTED = [`${TEST}/nested/nested-kvm.long.test.ts`];

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
  const why = `in an emulated machine, which takes from a quarter of an hour to more than an hour: ${reason}`;
  return { files: NESTED, environment: {}, why };
}
