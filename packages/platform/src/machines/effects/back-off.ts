/** Waiting before the next start that the restart policy gives an app. */
import { setTimeout as delay } from "node:timers/promises";
import type { EffectContext, EffectResult } from "./context.ts";

/** Ends when the next attempt is due; at once when no time is recorded. Rejects when something else is asked for first. */
export async function backOff({ record, signal }: EffectContext): Promise<EffectResult> {
  const due = record.crash?.retry_at ?? null;
  const waitMs = due === null ? 0 : Math.max(0, Date.parse(due) - Date.now());
  await delay(waitMs, undefined, { signal });
  return { outcome: "retry" };
}
