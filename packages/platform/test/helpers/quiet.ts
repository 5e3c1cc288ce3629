import { setTimeout as delay } from "node:timers/promises";

/**
 * Lets time pass in which something must not happen: absence has no event to wait for. Everything else waits for a
 * condition.
 *
 * @param ms Several times what the thing would take if it did happen.
 */
export function quietFor(ms: number): Promise<void> {
  return delay(ms);
}
