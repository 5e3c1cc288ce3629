/** Waiting before the next start that the restart policy gives an app. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { VmmHeld } from "@hibernaut/hypervisor";
import { isHostTrouble } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";
import type { EffectOutcome } from "../decide/index.ts";
import type { EffectPorts } from "./ports.ts";

/** How often a restart looks whether its machine may be started again, in milliseconds. */
const LOOK_MS = 1_000;

/**
 * Ends at `until` (RFC 3339), or at once without one, and not before the machine's last VMM has ended and the host has room
 * for it: a start that is refused must not use up the restarts of its app. Rejects with the signal's reason when something
 * else is requested first.
 */
export async function backOff(
  { record, until }: { record: MachineRecord; until: string | null },
  ports: Pick<EffectPorts, "admission" | "machineLog" | "log" | "ownership" | "hypervisor">,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const { admission, machineLog, log, ownership } = ports;
  const waitMs = until === null ? 0 : Math.max(0, Date.parse(until) - Date.now());
  await delay(waitMs, undefined, { signal });
  await vmmEnded(record.id, ports, signal);
  await admission.room(record, signal, (reason) => {
    log.warn({ machine: record.id, reason }, "a restart waits for room");
    machineLog.platform(`The restart waits for room. ${reason}`);
  });
  // Nor one that the host may not make now.
  const refusal = async () => ownership?.verify(record.id, signal);
  while ((await refusal()) !== undefined) await delay(LOOK_MS, undefined, { signal });
  return { type: "retry" };
}

/** Resolves when no VMM of the machine that was killed is left. Says once that it waits. */
async function vmmEnded(
  machine: string,
  { hypervisor, machineLog, log }: Pick<EffectPorts, "hypervisor" | "machineLog" | "log">,
  signal: AbortSignal,
): Promise<void> {
  for (let said = false; ; said = true) {
    try {
      return await hypervisor.requireEnded(machine);
    } catch (error) {
      if (!(error instanceof VmmHeld || isHostTrouble(error))) throw error;
      const reason = messageOf(error);
      if (!said) {
        log.warn(
          { machine, ...(error instanceof VmmHeld && { pid: error.ref.pid }), reason },
          "a restart waits for a VMM to end",
        );
        machineLog.platform(`The restart waits. ${reason}`);
      }
    }
    await delay(LOOK_MS, undefined, { signal });
  }
}
