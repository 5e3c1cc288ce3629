/** Whether the host, or the control group that this process is confined to, is short of memory. */
import { readFileSync } from "node:fs";
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

  /** Returns whether memory is short now. What cannot be read, as on an old kernel, says nothing. */
  short(): boolean {
    const available = availableIn(read(join(this.#proc, "meminfo")));
    const stalled = stalledIn(read(join(this.#proc, "pressure/memory")));
    return available < LEAST_AVAILABLE || stalled >= STALLED_PERCENT || this.#groups().some(isFull);
  }

  /** The groups with a limit above this process: version 2, or the memory controller of version 1. */
  #groups(): Group[] {
    const lines = read(join(this.#proc, "self/cgroup")).split("\n");
    return lines.flatMap((line) => {
      const [, controllers = "", path = "/"] = line.split(":");
      if (controllers === "") return groupV2(join(this.#cgroups, path));
      return controllers.split(",").includes("memory") ? groupV1(join(this.#cgroups, "memory", path)) : [];
    });
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

function groupV2(folder: string): Group {
  const used = fieldIn(read(join(folder, "memory.stat")), "anon");
  const stalled = stalledIn(read(join(folder, "memory.pressure")));
  return { limit: Number(read(join(folder, "memory.max"))), used, stalled };
}

function groupV1(folder: string): Group {
  const used = fieldIn(read(join(folder, "memory.stat")), "total_rss");
  return { limit: Number(read(join(folder, "memory.limit_in_bytes"))), used, stalled: 0 };
}

function isFull({ limit, used, stalled }: Group): boolean {
  return stalled >= STALLED_PERCENT || (limit > 0 && used >= limit * FULL);
}

/** The share of memory that programs can still get; 1 when it is not known. */
function availableIn(meminfo: string): number {
  const [total, available] = [/^MemTotal:\s+(\d+)/m, /^MemAvailable:\s+(\d+)/m].map(
    (field) => field.exec(meminfo)?.[1],
  );
  return total === undefined || available === undefined ? 1 : Number(available) / Number(total);
}

/** The share of the last 10 s, in percent, in which some process waited for memory; 0 when it is not known. */
function stalledIn(pressure: string): number {
  return Number(/^some avg10=([\d.]+)/m.exec(pressure)?.[1] ?? 0);
}

/** A number of a `memory.stat`; 0 when it is not there. */
export function fieldIn(stat: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)`, "m").exec(stat)?.[1] ?? 0);
}

/** The text of a file of the kernel, which may not have it. In memory, so a read takes microseconds. */
export function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
