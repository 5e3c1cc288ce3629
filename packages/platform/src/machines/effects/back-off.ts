/** Waiting before the next start that the restart policy gives an app. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "../../domain/machine.ts";
import type { EffectOutcome } from "../decide/index.ts";
import type { EffectPorts } from "./ports.ts";

/** How often a restart looks whether its host may start the machine again, in milliseconds. */
const OWNED_LOOK_MS = 1_000;

/**
 * Ends at `until` (RFC 3339), or at once without one, and not before the host has room for the machine: a start that is
 * refused must not use up the restarts of its app. Rejects with the signal's reason when something else is requested
 * first.
 */
export async function backOff(
  { record, until }: { record: MachineRecord; until: string | null },
  { admission, machineLog, log, ownership }: Pick<EffectPorts, "admission" | "machineLog" | "log" | "ownership">,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const waitMs = until === null ? 0 : Math.max(0, Date.parse(until) - Date.now());
  await delay(waitMs, undefined, { signal });
  await admission.room(record, signal, (reason) => {
    log.warn({ machine: record.id, reason }, "a restart waits for room");
    machineLog.platform(`The restart waits for room. ${reason}`);
  });
  // Nor one that the host may not make now.
  const refusal = async () => ownership?.verify(record.id, signal);
  while ((await refusal()) !== undefined) await delay(OWNED_LOOK_MS, undefined, { signal });
  return { type: "retry" };
}
