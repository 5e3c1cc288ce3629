/** What a change of an app's secrets means for its machines. */
import { isResting, type MachineState } from "@hibernaut/domain/machine";
import type { MachineController } from "./controller.ts";

/** What a change of an app's secrets does to its machines, by id. */
export interface SecretsEffect {
  /** Machines whose snapshots were discarded, because they contain the old secrets. Their next start is cold. */
  discarded: string[];
  /** Machines that keep running with the old secrets until their next cold start. */
  pending: string[];
}

/** A machine, as far as a change of secrets concerns it. */
export type HasSecrets = Pick<MachineController, "record" | "command">;

/** States in which a machine has, or is just being given, the old environment. */
const AWAKE: readonly MachineState[] = ["starting", "running", "suspending"];

/**
 * Carries out `change` and discards the snapshots of the app's machines, because a snapshot contains the old secrets
 * in its memory. With `dryRun`, only returns what would happen. Synchronous, so that no start happens in between: a
 * start has either resumed the snapshot before, or does not find it.
 */
export function changeSecrets(
  machines: readonly HasSecrets[],
  change: () => void,
  { dryRun = false }: { dryRun?: boolean } = {},
): SecretsEffect {
  // Not only `suspended`: a start that failed because QEMU is missing leaves its machine `failed`, with a snapshot.
  const asleep = machines.filter(({ record }) => isResting(record.state) && record.snapshot !== null);
  const awake = machines.filter(({ record }) => AWAKE.includes(record.state));
  if (!dryRun) {
    change();
    for (const machine of asleep) machine.command({ type: "discard_snapshot", reason: "secrets_changed" });
  }
  return { discarded: asleep.map(idOf), pending: awake.map(idOf) };
}

function idOf({ record }: HasSecrets): string {
  return record.id;
}
