/** Waiting before the next start that the restart policy gives an app. */
import { setTimeout as delay } from "node:timers/promises";
import type { EffectOutcome } from "../decide/index.ts";

/**
 * Ends at `until` (RFC 3339), or at once without one. Rejects with the signal's reason when something else is requested
 * first.
 */
export async function backOff({ until }: { until: string | null }, signal: AbortSignal): Promise<EffectOutcome> {
  const waitMs = until === null ? 0 : Math.max(0, Date.parse(until) - Date.now());
  await delay(waitMs, undefined, { signal });
  return { type: "retry" };
}
