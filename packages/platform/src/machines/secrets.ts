/** What a change of an app's secrets means to its machines. */
import type { MachineController } from "./controller.ts";
import type { SecretsEffect } from "./service.ts";
import { isResting, type MachineState } from "../domain/machine.ts";

/** They have, or are just being given, the environment that was in force before. */
const AWAKE: readonly MachineState[] = ["starting", "running", "suspending"];

/**
 * Carries out `change` and discards the snapshots of the app's machines that sleep: with its memory each holds the
 * secrets of before. With `dryRun` it only says what would happen. All in one go, so that no start comes in between:
 * it has resumed the snapshot before, or does not find it.
 */
export function changeSecrets(
  machines: readonly MachineController[],
  change: () => void,
  { dryRun = false }: { dryRun?: boolean } = {},
): SecretsEffect {
  // A start that failed for want of a QEMU leaves its machine `failed`, with a snapshot.
  const asleep = machines.filter(({ record }) => isResting(record.state) && record.snapshot !== null);
  const awake = machines.filter(({ record }) => AWAKE.includes(record.state));
  if (!dryRun) {
    change();
    for (const machine of asleep) machine.command({ type: "discard_snapshot", reason: "secrets_changed" });
  }
  return { discarded: asleep.map(idOf), pending: awake.map(idOf) };
}

function idOf({ record }: MachineController): string {
  return record.id;
}
