/** What happens when the app ends by itself: a pure rule. */
import type { GuestExit } from "../guest/agent.ts";
import type { MachineConfig } from "./config.ts";

const DEFAULT_POLICY = "on-failure";
const DEFAULT_MAX_RETRIES = 10;
/** The first retry is soon, because most failures pass; then the wait doubles up to the limit. */
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 30_000;
/** An app that ran this long works: its next failure is a new one. */
const HEALTHY_MS = 60_000;

/** How long to wait before the next start, in milliseconds, or null for no restart. `retries` counts restarts in a row. */
export function restartDelay(config: MachineConfig, retries: number, ended: { failed: boolean }): number | null {
  const policy = config.restart?.policy ?? DEFAULT_POLICY;
  const wanted = policy === "always" || (policy === "on-failure" && ended.failed);
  if (!wanted || retries >= (config.restart?.max_retries ?? DEFAULT_MAX_RETRIES)) return null;
  return Math.min(FIRST_DELAY_MS * 2 ** retries, LONGEST_DELAY_MS);
}

/** How many restarts there were in a row, now that the app has ended after running this long. */
export function restartsInARow(restarts: number, ranForMs: number): number {
  return ranForMs >= HEALTHY_MS ? 0 : restarts;
}

export function hasFailed(exit: GuestExit): boolean {
  return exit.code !== 0 || exit.signal !== 0;
}

/** How the app ended, for people. */
export function describeExit(exit: GuestExit): string {
  if (exit.oom) return "the app was killed: out of memory";
  if (exit.signal !== 0) return `the app was ended by signal ${exit.signal}`;
  return `the app exited with code ${exit.code}`;
}
