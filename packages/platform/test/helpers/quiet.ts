import { setTimeout as delay } from "node:timers/promises";

/**
 * Waits while something must not happen. Absence has no event to wait for; wait for a condition in all other cases.
 *
 * @param ms Several times as long as the thing would take if it did happen.
 */
export function quietFor(ms: number): Promise<void> {
  return delay(ms);
}
