/** The rows of `hibernaut top`. Pure. */
import type { Activity, Machine } from "@hibernaut/client";
import { isWarm, stateCell } from "./crashed.ts";
import { bootText } from "./machine-columns.ts";
import { ago, megabytes } from "./terminal.ts";

/** A machine and what it was used for, at one moment. */
export interface Sample {
  machine: Machine;
  activity: Activity;
  /** Milliseconds of a steady clock. */
  at: number;
}

export const HEAD = ["APP", "NAME", "STATE", "CPU", "HOST MEMORY", "LAST START", "WHY IT IS AWAKE"];

export const SPARE = ["LAST START"];

export const FOOT = "HOST MEMORY is what QEMU occupies of the host's RAM. 100 % CPU is one CPU.";

/** One row per machine: those that are running first, the busiest at the top, and those that are kept warm after them. `before` are the samples of the last time. */
export function topRows(samples: readonly Sample[], before: ReadonlyMap<string, Sample>, now = Date.now()): string[][] {
  const rows = samples.map((sample) => ({ sample, cpu: cpuOf(sample, before.get(sample.machine.id)) }));
  const isAwake = ({ sample }: (typeof rows)[number]) =>
    sample.activity.process === null ? 0 : isWarm(sample.machine) ? 1 : 2;
  return rows
    .toSorted((a, b) => isAwake(b) - isAwake(a) || (b.cpu ?? 0) - (a.cpu ?? 0))
    .map(({ sample: { machine, activity }, cpu }) => [
      machine.app_name,
      machine.name,
      stateCell(machine),
      cpu === undefined ? "" : `${Math.round(cpu * 100)} %`,
      activity.process === null ? "" : megabytes(activity.process.resident_bytes),
      startCell(machine, now),
      activity.awake?.message ?? warmCell(machine, now),
    ]);
}

/** CPUs that the machine used since the last sample, 1 for one of them all the time. Undefined without two samples. */
function cpuOf({ activity, at }: Sample, last: Sample | undefined): number | undefined {
  const [used, then] = [activity.process?.cpu_ms, last?.activity.process?.cpu_ms];
  // A process that took its place has used less than the one before it.
  if (used === undefined || then === undefined || last === undefined || used < then || at <= last.at) return undefined;
  return (used - then) / (at - last.at);
}

/** A machine that is kept warm sleeps, and still takes memory. */
function warmCell({ snapshot }: Machine, now: number): string {
  const until = snapshot?.warm_until ?? null;
  return until === null
    ? ""
    : `asleep; kept warm for ${Math.max(0, Math.ceil((Date.parse(until) - now) / 1000))} s more`;
}

function startCell({ last_boot: boot }: Machine, now: number): string {
  return boot === null ? "never" : `${bootText(boot)}, ${ago(boot.at, now)}`;
}
