/** What is metered, and by which rules. Pure: the store applies them in the transaction of the change that they follow. */
import type { MachineState } from "./machine.ts";

/** What a machine costs at a moment: a running one CPU, memory and storage, every other one storage only. */
export type Meter = "running" | "suspended" | "stopped";

/** What accrues per unit of time while nothing changes. Sizes are in MB of 1024 KB. */
export interface Rates {
  /** `volume` for a volume, which always costs its size. */
  meter: Meter | "volume";
  cpus: number;
  memoryMb: number;
  /** What the writable layer takes up on the disk. */
  layerMb: number;
  /** The size of the volume. */
  volumeMb: number;
  /** What the snapshot takes up on the disk. Reported, never billed. */
  snapshotMb: number;
}

/**
 * The amounts that are added up, which are also the columns they are stored in. Milliseconds, multiplied by the size
 * that the name says; `whole_` counts the time in which the machine existed, whatever it did.
 */
export const AMOUNTS = [
  "running_ms",
  "suspended_ms",
  "stopped_ms",
  "cpu_ms",
  "memory_mb_ms",
  "whole_cpu_ms",
  "whole_memory_mb_ms",
  "layer_mb_ms",
  "volume_mb_ms",
  "snapshot_mb_ms",
  "resumes",
  "cold_starts",
  "bytes_in",
  "bytes_out",
] as const;

export type Amounts = Record<(typeof AMOUNTS)[number], number>;

/** Nothing of anything. */
export function noAmounts(): Amounts {
  return Object.fromEntries(AMOUNTS.map((name) => [name, 0])) as Amounts;
}

/** Adds `more` to `sum`, which is changed. */
export function addAmounts(sum: Amounts, more: Readonly<Partial<Amounts>>): void {
  for (const name of AMOUNTS) sum[name] += more[name] ?? 0;
}

/**
 * The meter of a machine that is now in `state`, or null when it is destroyed. The one rule for passing states: a start
 * counts as running from the moment it is stored, and every other passing state counts as what the machine was before.
 *
 * @param before the meter until now; undefined for a new machine
 */
export function meterAfter(state: MachineState, before: Meter | undefined): Meter | null {
  switch (state) {
    case "running":
    case "starting":
      return "running";
    case "suspended":
      return "suspended";
    case "created":
    case "stopped":
    case "failed":
    case "restarting":
      return "stopped";
    case "suspending":
    case "stopping":
    case "updating":
    case "destroying":
      return before ?? "stopped";
    case "destroyed":
      return null;
  }
}

/** What accrues in `ms` milliseconds at these rates. */
export function accrued({ meter, cpus, memoryMb, layerMb, volumeMb, snapshotMb }: Rates, ms: number): Amounts {
  const runningMs = meter === "running" ? ms : 0;
  return {
    ...noAmounts(),
    running_ms: runningMs,
    suspended_ms: meter === "suspended" ? ms : 0,
    stopped_ms: meter === "stopped" ? ms : 0,
    cpu_ms: cpus * runningMs,
    memory_mb_ms: memoryMb * runningMs,
    whole_cpu_ms: cpus * ms,
    whole_memory_mb_ms: memoryMb * ms,
    layer_mb_ms: layerMb * ms,
    volume_mb_ms: volumeMb * ms,
    snapshot_mb_ms: snapshotMb * ms,
  };
}

const MB = 1024 * 1024;

/** Whole megabytes, rounded up: what is stored is never free. */
export function wholeMb(bytes: number): number {
  return Math.ceil(bytes / MB);
}
