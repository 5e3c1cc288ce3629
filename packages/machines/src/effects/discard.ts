/** Cleaning up after snapshots that no record names any more. */
import { messageOf } from "@hibernaut/lib/text";
import type { MachineGuest } from "../guest.ts";
import type { EffectPorts } from "./ports.ts";

/** Removes all generations of the machine, and with `memory` also its memory file. Safe to repeat. */
export async function discardSnapshots(
  { machineId, memory }: { machineId: string; memory: boolean },
  { snapshots, files }: Pick<EffectPorts, "snapshots" | "files">,
): Promise<void> {
  await snapshots.discardOthers(machineId, undefined);
  if (memory) await files.forgetMemory(machineId);
}

/** Ends the kept VMM of a snapshot that is given up with its memory, and does the same. What cannot be deleted stays, and is logged. */
export async function discardGivenUp(
  { machineId, memory, guest }: { machineId: string; memory: boolean; guest: Pick<MachineGuest, "kept" | "kill"> },
  ports: Pick<EffectPorts, "snapshots" | "files" | "log">,
): Promise<void> {
  try {
    if (memory && guest.kept !== undefined) await guest.kill();
    await discardSnapshots({ machineId, memory }, ports);
  } catch (error) {
    ports.log.warn({ machine: machineId, reason: messageOf(error) }, "old snapshots cannot be deleted");
  }
}
