/** Waiting before the next start that the restart policy gives an app. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "../../domain/machine.ts";
import type { EffectOutcome } from "../decide/index.ts";
import type { EffectPorts } from "./ports.ts";

/**
 * Ends at `until` (RFC 3339), or at once without one, and not before the host has room for the machine: a start that is
 * refused must not use up the restarts of its app. Rejects with the signal's reason when something else is requested
 * first.
 */
export async function backOff(
  { record, until }: { record: MachineRecord; until: string | null },
  { admission, machineLog, log }: Pick<EffectPorts, "admission" | "machineLog" | "log">,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const waitMs = until === null ? 0 : Math.max(0, Date.parse(until) - Date.now());
  await delay(waitMs, undefined, { signal });
  await admission.room(record, signal, (reason) => {
    log.warn({ machine: record.id, reason }, "a restart waits for room");
    machineLog.platform(`The restart waits for room. ${reason}`);
  });
  return { type: "retry" };
}
