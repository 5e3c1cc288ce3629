/**
 * What `npm run test:cluster` runs: the stories of API, proxy, CLI and dashboard, with all machines on another host than the
 * one that they talk to (`packages/cluster/test/through.ts`). All of them, except for those named here.
 */
import { listTestFiles } from "./test-files.mjs";

const STORIES = "packages/platform/test/stories";
/** Where stories are. */
const FOLDERS = [`${STORIES}/`, "packages/cli/test/", "packages/dashboard/test/"];

/**
 * Files that make no sense there, and why.
 *
 * @type {Record<string, string>}
 */
export const LEFT_OUT = {
  [`${STORIES}/accelerator.qemu.test.ts`]: "changes how one host runs guests, and only where KVM works",
  [`${STORIES}/backup-beside.qemu.test.ts`]: "a backup is of one host",
  "packages/dashboard/test/dashboard-backups.qemu.test.ts": "a backup is of one host",
  [`${STORIES}/drain.qemu.test.ts`]: "`hibernaut drain` suspends the machines of the host that it talks to",
  [`${STORIES}/life.qemu.test.ts`]: "begins with a release from before clusters",
  [`${STORIES}/offline-backup.qemu.test.ts`]: "a backup is of one host",
  [`${STORIES}/online-backup.qemu.test.ts`]: "a backup is of one host",
  [`${STORIES}/proxy-process.qemu.test.ts`]:
    "kills both platforms, and requests of another host end with the platform there",
  [`${STORIES}/up.qemu.test.ts`]: "`npm run up` starts a host alone",
  [`${STORIES}/webhooks.qemu.test.ts`]: "a webhook tells of the machines of the host that has it",
};

/**
 * Tests that make no sense there, of files that do: the beginnings of their names, and why.
 *
 * @type {Record<string, Record<string, string>>}
 */
export const TESTS_LEFT_OUT = {
  "packages/cli/test/real.qemu.test.ts": {
    "the tour prints what its recording shows":
      "in a cluster, lists of machines have their host in the place of the region",
  },
};

/** @param {string} root @returns {string[]} */
export function clusterStories(root) {
  return listTestFiles(root).filter(
    (file) => file.endsWith(".qemu.test.ts") && FOLDERS.some((folder) => file.startsWith(folder)),
  );
}

/**
 * Returns the files, and a pattern of names that leaves out the tests that make no sense.
 *
 * @param {string} root @returns {{files: string[], names: string}}
 */
export function planCluster(root) {
  const files = clusterStories(root).filter((file) => LEFT_OUT[file] === undefined);
  const names = Object.values(TESTS_LEFT_OUT).flatMap((tests) => Object.keys(tests));
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { files, names: escaped.length === 0 ? "" : `^(?!.*(?:${escaped.join("|")}))` };
}
