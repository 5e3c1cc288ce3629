/** Cleaning up after snapshots that no record names any more. */
import type { EffectPorts } from "./ports.ts";

/** Removes all generations of the machine, and with `memory` also its memory file. Safe to repeat. */
export async function discardSnapshots(
  { machineId, memory }: { machineId: string; memory: boolean },
  { snapshots, files }: Pick<EffectPorts, "snapshots" | "files">,
): Promise<void> {
  await snapshots.discardOthers(machineId, undefined);
  if (memory) await files.forgetMemory(machineId);
}
