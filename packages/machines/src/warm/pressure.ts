/** Whether the host, or the control group that this process is confined to, is short of memory. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Share of the last 10 s, in percent, in which some process waited for memory. */
const STALLED_PERCENT = 5;
/** Below this share of all memory, the kernel is about to reclaim what programs are using. */
const LEAST_AVAILABLE = 0.05;
/** The kernel reclaims clean pages of a full group first: only what it cannot drop counts against the limit. */
const FULL = 0.9;

export interface MemorySources {
  /** Root of procfs. Default: /proc. */
  proc?: string;
  /** Root of the control groups. Default: /sys/fs/cgroup. */
  cgroups?: string;
}

/** Tells what it was before, too, because a limit of a control group matters only when it is hit again. */
export class MemoryPressure {
  readonly #proc: string;
  readonly #cgroups: string;

  constructor({ proc = "/proc", cgroups = "/sys/fs/cgroup" }: MemorySources = {}) {
    this.#proc = proc;
    this.#cgroups = cgroups;
  }

  /** Resolves with whether memory is short now. What cannot be read, as on an old kernel, says nothing. */
  async short(): Promise<boolean> {
    const [meminfo, host, groups] = await Promise.all([
      read(join(this.#proc, "meminfo")),
      read(join(this.#proc, "pressure/memory")),
      this.#groups(),
    ]);
    return availableIn(meminfo) < LEAST_AVAILABLE || stalledIn(host) >= STALLED_PERCENT || groups.some(isFull);
  }

  /** The groups with a limit above this process: version 2, or the memory controller of version 1. */
  async #groups(): Promise<Group[]> {
    const lines = (await read(join(this.#proc, "self/cgroup"))).split("\n").map((line) => line.split(":"));
    const groups: Promise<Group>[] = [];
    for (const [, controllers = "", path = "/"] of lines) {
      if (controllers === "") groups.push(this.#groupV2(path));
      if (controllers.split(",").includes("memory")) groups.push(this.#groupV1(path));
    }
    return Promise.all(groups);
  }

  async #groupV2(path: string): Promise<Group> {
    const folder = join(this.#cgroups, path);
    const [limit, stat, pressure] = await Promise.all(
      ["memory.max", "memory.stat", "memory.pressure"].map((name) => read(join(folder, name))),
    );
    return { limit: Number(limit), used: fieldIn(stat ?? "", "anon"), stalled: stalledIn(pressure ?? "") };
  }

  async #groupV1(path: string): Promise<Group> {
    const folder = join(this.#cgroups, "memory", path);
    const [limit, stat] = await Promise.all(
      ["memory.limit_in_bytes", "memory.stat"].map((name) => read(join(folder, name))),
    );
    return { limit: Number(limit), used: fieldIn(stat ?? "", "total_rss"), stalled: 0 };
  }
}

interface Group {
  /** Bytes; not a number without a limit. */
  limit: number;
  /** Bytes that the kernel cannot drop. */
  used: number;
  /** Percent of the last 10 s. */
  stalled: number;
}

function isFull({ limit, used, stalled }: Group): boolean {
  return stalled >= STALLED_PERCENT || (limit > 0 && used >= limit * FULL);
}

/** The share of memory that programs can still get; 1 when it is not known. */
export function availableIn(meminfo: string): number {
  const [total, available] = [/^MemTotal:\s+(\d+)/m, /^MemAvailable:\s+(\d+)/m].map(
    (field) => field.exec(meminfo)?.[1],
  );
  return total === undefined || available === undefined ? 1 : Number(available) / Number(total);
}

/** The share of the last 10 s, in percent, in which some process waited for memory; 0 when it is not known. */
export function stalledIn(pressure: string): number {
  return Number(/^some avg10=([\d.]+)/m.exec(pressure)?.[1] ?? 0);
}

function fieldIn(stat: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)`, "m").exec(stat)?.[1] ?? 0);
}

function read(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
