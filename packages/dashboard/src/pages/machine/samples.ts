/** CPU and memory of a machine over time, from what the platform says every few seconds. Pure. */
import type { Activity } from "@hibernaut/client/browser";

/** One reading. */
export interface Sample {
  /** Milliseconds since 1970. */
  at: number;
  process: Activity["process"];
}

/** One point of a plot. Null while the machine has no process. */
export interface Load {
  at: number;
  /** Share of one CPU, in percent: 200 is two CPUs. Null also for the first reading of a process. */
  cpuPercent: number | null;
  memoryBytes: number | null;
}

/** What is kept: half an hour of readings every two seconds. */
export const MOST_LOADS = 900;

/** Adds what a reading says, compared with the one before. */
export function withLoad(loads: readonly Load[], before: Sample | undefined, now: Sample): Load[] {
  const load = { at: now.at, cpuPercent: cpuBetween(before, now), memoryBytes: now.process?.resident_bytes ?? null };
  return [...loads.slice(1 - MOST_LOADS), load];
}

function cpuBetween(before: Sample | undefined, now: Sample): number | null {
  const used = (now.process?.cpu_ms ?? NaN) - (before?.process?.cpu_ms ?? NaN);
  const passed = now.at - (before?.at ?? now.at);
  // Another process has begun when the time goes back.
  if (Number.isNaN(used) || used < 0 || passed <= 0) return null;
  return (100 * used) / passed;
}
