/** How much memory programs can still get: of the host, or of the control group that this process is confined to. */
import { join } from "node:path";
import { fieldIn, type MemorySources, read } from "../warm/pressure.ts";

/** Groups get their first limit rarely, and finding them reads a few files: they are looked for again after this. */
const GROUPS_AGE_MS = 10_000;
/** Version 1 says "no limit" with the largest number of pages. No host has an exabyte. */
const NO_LIMIT = 2 ** 60;
const KB = 1024;

/** A control group with a limit, in either version. */
interface Group {
  /** The file with the limit, in bytes. */
  limit: string;
  /** The file with what the group takes, in bytes. */
  usage: string;
  stat: string;
  /** Fields of `stat` that the kernel can drop, in bytes. */
  droppable: readonly string[];
}

/**
 * Reads the kernel's numbers synchronously: procfs and the control groups are in memory, so a read takes microseconds, and
 * a start must not be decided on by numbers from before another start.
 */
export class HostMemory {
  readonly #proc: string;
  readonly #cgroups: string;
  readonly #now: () => number;
  #groups: readonly Group[] = [];
  #groupsAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a steady clock */
  constructor({ proc = "/proc", cgroups = "/sys/fs/cgroup" }: MemorySources = {}, now = () => performance.now()) {
    this.#proc = proc;
    this.#cgroups = cgroups;
    this.#now = now;
  }

  /**
   * Returns how many bytes programs can still get without swap: the least of what the host and each limited control group
   * above this process have left. The page cache counts as left. Undefined when the kernel does not say.
   */
  available(): number | undefined {
    const host = meminfoAvailable(read(join(this.#proc, "meminfo")));
    if (host === undefined) return undefined;
    return this.#limited().reduce((least, group) => Math.min(least, leftIn(group)), host);
  }

  #limited(): readonly Group[] {
    if (this.#now() - this.#groupsAt < GROUPS_AGE_MS) return this.#groups;
    this.#groupsAt = this.#now();
    const lines = read(join(this.#proc, "self/cgroup"))
      .split("\n")
      .map((line) => line.split(":"));
    this.#groups = lines.flatMap(([, controllers, ...path]) => {
      const paths = withParents(path.join(":"));
      if (controllers === "") return paths.flatMap((one) => groupV2(join(this.#cgroups, one)));
      return controllers?.split(",").includes("memory")
        ? paths.flatMap((one) => groupV1(join(this.#cgroups, "memory", one)))
        : [];
    });
    return this.#groups;
  }
}

/** `MemAvailable` of /proc/meminfo in bytes; undefined without one. Pure. */
export function meminfoAvailable(meminfo: string): number | undefined {
  const found = /^MemAvailable:\s+(\d+) kB/m.exec(meminfo)?.[1];
  return found === undefined ? undefined : Number(found) * KB;
}

/** A group and all above it: each may have a limit. In a container, the path may not exist, but the root does. */
function withParents(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return Array.from({ length: names.length + 1 }, (_, count) => names.slice(0, count).join("/"));
}

function groupV2(folder: string): Group[] {
  const limit = join(folder, "memory.max");
  if (!Number.isFinite(limitIn(limit))) return [];
  const droppable = ["inactive_file", "active_file", "slab_reclaimable"];
  return [{ limit, usage: join(folder, "memory.current"), stat: join(folder, "memory.stat"), droppable }];
}

function groupV1(folder: string): Group[] {
  const limit = join(folder, "memory.limit_in_bytes");
  if (!Number.isFinite(limitIn(limit))) return [];
  const droppable = ["total_inactive_file", "total_active_file"];
  return [{ limit, usage: join(folder, "memory.usage_in_bytes"), stat: join(folder, "memory.stat"), droppable }];
}

/** Infinity without a limit, and for a group that does not exist. */
function limitIn(path: string): number {
  const limit = Number(read(path) || Number.NaN);
  return limit < NO_LIMIT ? limit : Number.POSITIVE_INFINITY;
}

/** What a group has left, in bytes, if the kernel drops what it can. A group that was removed has no limit any more. */
function leftIn({ limit, usage, stat, droppable }: Group): number {
  const used = read(usage);
  if (used === "") return Number.POSITIVE_INFINITY;
  const text = read(stat);
  const dropped = droppable.reduce((sum, name) => sum + fieldIn(text, name), 0);
  return limitIn(limit) - Math.max(0, Number(used) - dropped);
}
