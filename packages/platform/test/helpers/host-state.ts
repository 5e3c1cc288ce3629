/** What a platform has on its host at the moment: everything that machines bring and must take with them. */
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { listTaps } from "@hibernaut/network/bridge/commands";
import { namesFor } from "../../../network/src/bridge/names.ts";
import { networkOf } from "./served.ts";

/** Control groups of machines are in `hibernaut-*` in one of these, and have the machine's id in their path. */
const CGROUP_ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"];

interface HostState {
  processes: number[];
  taps: string[];
  /** Other interfaces, and tables of the firewall. */
  network: string[];
  mounts: string[];
  cgroups: string[];
  /** Below the data directory, without what belongs to the platform and grows by itself. */
  files: string[];
}

/** What stays the same however many machines there are: the database, images, templates. */
const OF_THE_PLATFORM = /^(hibernaut\.db|images\/|bundles\/|layer-\d+\.ext4|cfg\/)/;

/**
 * Returns what is there now for the platform with this data directory. `ids`: the machines whose control groups count, as
 * other platforms on the host have theirs.
 */
export async function hostState(dataDir: string, ids: readonly string[] = []): Promise<HostState> {
  const mounts = (await readFile("/proc/self/mountinfo", "utf8")).split("\n").filter((line) => line.includes(dataDir));
  const [processes, taps, network] = await Promise.all([
    guestsIn(dataDir),
    process.getuid?.() === 0 ? listTaps(namesFor(dataDir)) : [],
    networkOf(dataDir),
  ]);
  return {
    processes: processes.map(({ pid }) => pid).toSorted((one, other) => one - other),
    taps: [...taps].toSorted(),
    network: network.toSorted(),
    mounts: mounts.toSorted(),
    cgroups: CGROUP_ROOTS.flatMap((root) => groupsIn(root, ids)).toSorted(),
    files: (readdirSync(dataDir, { recursive: true }) as string[])
      .filter((path) => !OF_THE_PLATFORM.test(path))
      .toSorted(),
  };
}

function groupsIn(root: string, ids: readonly string[]): string[] {
  if (!existsSync(root)) return [];
  const tops = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && entry.name.startsWith("hibernaut-"),
  );
  const below = (name: string) =>
    (readdirSync(join(root, name), { recursive: true }) as string[]).map((path) => join(name, path));
  return tops
    .flatMap(({ name }) => [name, ...below(name)])
    .filter((path) => ids.some((id) => path.includes(id)))
    .map((path) => join(root, path));
}
