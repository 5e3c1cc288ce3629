/** What follows when an app ends by itself: pure rules. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { Crash, MachineRecord, RestingState } from "@hibernaut/domain/machine";
import type { GuestExit } from "@hibernaut/guest";

const DEFAULT_POLICY = "on-failure";
const DEFAULT_MAX_RETRIES = 10;
/** The first retry comes soon, because most failures pass. After that the wait doubles, up to the limit. */
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 30_000;
/** An app that ran this long works: its next failure is a new one. */
const HEALTHY_MS = 60_000;
/** A single failure of an app that ran may be an accident. One that fails again right after its restart is broken. */
const KNOWN_AFTER_ATTEMPTS = 2;

/** How an app, or its virtual machine, ended. */
interface End {
  /** Undefined when the virtual machine vanished. */
  exit: GuestExit | undefined;
  /** For people. */
  reason: string;
  at: Date;
}

/** Returns how long to wait before the next start, in milliseconds, or null for no restart. `retries` counts restarts in a row. */
export function restartDelay(config: MachineConfig, retries: number, ended: { failed: boolean }): number | null {
  if (!isWanted(config, ended) || retries >= maxRetries(config)) return null;
  return Math.min(FIRST_DELAY_MS * 2 ** retries, LONGEST_DELAY_MS);
}

function isWanted(config: MachineConfig, ended: { failed: boolean }): boolean {
  const policy = config.restart?.policy ?? DEFAULT_POLICY;
  return policy === "always" || (policy === "on-failure" && ended.failed);
}

/** Returns the number of restarts in a row, now that the app has ended after running this long. */
export function restartsInARow(restarts: number, ranForMs: number): number {
  return ranForMs >= HEALTHY_MS ? 0 : restarts;
}

/**
 * Returns what the record says once the app has ended by itself. `crash` is null when the app ended well and is not
 * started again; `crash.retry_at` is null when it failed and the policy gives it no further attempt.
 */
export function afterEnd(
  { config, state, restarts: before, lastBoot }: Pick<MachineRecord, "config" | "state" | "restarts" | "lastBoot">,
  { exit, reason, at }: End,
): { restarts: number; crash: Crash | null } {
  const ranForMs = lastBoot === null ? 0 : at.getTime() - Date.parse(lastBoot.at);
  const restarts = restartsInARow(before, ranForMs);
  const failed = exit === undefined || hasFailed(exit);
  const delayMs = restartDelay(config, restarts, { failed });
  const again = delayMs !== null;
  if (!failed && !again) return { restarts, crash: null };
  const crash: Crash = {
    at: at.toISOString(),
    reason,
    exit_code: exit?.code ?? null,
    at_start: state === "starting",
    attempt: again ? restarts + 1 : restarts,
    max_attempts: maxRetries(config),
    retry_at: again ? new Date(at.getTime() + delayMs).toISOString() : null,
  };
  return { restarts: again ? restarts + 1 : restarts, crash };
}

/**
 * Returns the same for an app that was lost with its host, which is not its fault: it starts again unless its policy never
 * does that, and has all its restarts left.
 */
export function afterHostLoss(
  { config }: Pick<MachineRecord, "config">,
  { reason, at }: Omit<End, "exit">,
): { restarts: number; crash: Crash } {
  const again = isWanted(config, { failed: true });
  const crash: Crash = {
    at: at.toISOString(),
    reason,
    exit_code: null,
    at_start: false,
    attempt: again ? 1 : 0,
    // The restart is had on top of them.
    max_attempts: again ? Math.max(1, maxRetries(config)) : maxRetries(config),
    retry_at: again ? new Date(at.getTime() + FIRST_DELAY_MS).toISOString() : null,
  };
  return { restarts: 0, crash };
}

/** Returns whether the app is broken rather than unlucky: a request that waits for it would wait in vain. */
export function isKnownToCrash({ at_start: atStart, attempt }: Crash): boolean {
  return atStart || attempt >= KNOWN_AFTER_ATTEMPTS;
}

/** Returns where a machine rests after an update. One that runs, was meant to run, or failed starts with the new version. */
export function restAfterUpdate({ state, goal, crash }: Pick<MachineRecord, "state" | "goal" | "crash">): RestingState {
  const meantToRun =
    state === "starting" || state === "restarting" || state === "failed" || goal === "running" || goal === "restarting";
  if (meantToRun || (crash ?? null) !== null) return "running";
  return state === "stopping" ? "stopped" : (state as RestingState);
}

/** Returns whether the app ended with an exit code or signal that means failure. */
function hasFailed(exit: GuestExit): boolean {
  return exit.code !== 0 || exit.signal !== 0;
}

/** Says how the app ended, for people. */
export function describeExit(exit: GuestExit): string {
  if (exit.oom) return "the app was killed: out of memory";
  if (exit.signal !== 0) return `the app was ended by signal ${exit.signal}`;
  return `the app exited with code ${exit.code}`;
}

function maxRetries(config: MachineConfig): number {
  return config.restart?.max_retries ?? DEFAULT_MAX_RETRIES;
}
