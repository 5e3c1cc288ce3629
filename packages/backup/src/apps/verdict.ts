/** What a drill finds, and whether that is good enough. Pure. */
import type { BackupConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";

/** What a drill saw of one machine. */
export interface DrilledMachine {
  /** The machine that it was in the backup. */
  from: string;
  name: string;
  /** How it came up: `resume`, `warm` or `cold`; null if it did not. */
  start: string | null;
  /** `stopped`: so it was in the backup, and nobody started it. */
  health: "healthy" | "failed" | "stopped";
  /** Milliseconds from its start until it was healthy or had failed; null if it was not started. */
  tookMs: number | null;
  /** Why it started from scratch, or failed, as the end of a sentence; null where nothing is to be said. */
  note: string | null;
}

/** What was counted in a restored machine. */
export interface DrillCount {
  machine: string;
  name: string;
  /** Null when it could not be counted. */
  value: number | null;
  minimum: number;
  /** What the drill before counted; null if there is none. */
  before: number | null;
  note: string | null;
}

type Count = NonNullable<BackupConfig["counts"]>[number];

/** Reads what a command printed. Returns why it is not a number, as the end of a sentence. */
export function countOf(text: string): number | string {
  const word = text.trim();
  return /^\d{1,15}$/.test(word) ? Number(word) : `it printed "${word.slice(0, 60)}", which is not a number`;
}

/** Returns what was counted. `value` is a reason where it could not be. */
export function drillCount(
  machine: string,
  { name, minimum = 1 }: Count,
  value: number | string,
  before: readonly DrillCount[],
): DrillCount {
  const last = before.find((one) => one.name === name && one.machine === machine)?.value ?? null;
  const known = { machine, name, minimum, before: last };
  if (typeof value === "string") return { ...known, value: null, note: value };
  return { ...known, value, note: value < minimum ? `${value} is less than ${minimum}` : null };
}

/** How a drill ended. `untried`: no machine of the app was worth starting, so that nothing is known. */
export type DrillOutcome = "passed" | "failed" | "untried";

/** Returns how a drill without an error ended. */
export function outcomeOf(machines: readonly DrilledMachine[]): DrillOutcome {
  return machines.some(({ health }) => health !== "stopped") ? "passed" : "untried";
}

/**
 * Whether a drill starts a machine: it was running or asleep, a request would have started it, or it has something to count. A
 * job that is over would be done once more.
 */
export function isTried({ state, drained, config }: Pick<MachineRecord, "state" | "drained" | "config">): boolean {
  if (state === "suspended" || state === "failed" || drained === true) return true;
  return (
    (config.backup?.counts ?? []).length > 0 || (config.services ?? []).some(({ autostart }) => autostart !== false)
  );
}

/** Returns why a drill failed, as a sentence. Undefined when it did not. */
export function drillFailure(machines: readonly DrilledMachine[], counts: readonly DrillCount[]): string | undefined {
  const sick = machines.find(({ health }) => health === "failed");
  if (sick !== undefined) return `Machine ${sick.name} did not get healthy: ${sick.note ?? "nothing says why"}.`;
  const few = counts.find(({ note }) => note !== null);
  return few && `The count of ${few.name} in machine ${few.machine} is not what it should be: ${few.note ?? ""}.`;
}
