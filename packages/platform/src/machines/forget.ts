/** The end of a machine on a host that is not its owner any more. */
import type { MachineEvent, MachineRecord } from "../domain/machine.ts";
import type { RemarkName } from "./decide/index.ts";
import type { MachineDependencies } from "./dependencies.ts";
import type { TakenAway } from "./ownership.ts";

/** Moves a machine's files to quarantine, or deletes them, and then forgets its record. Repeated after a crash in between. */
export async function forget(
  record: MachineRecord,
  { host, epoch, reason, keep }: Omit<TakenAway, "id">,
  { files, store, snapshots, clock }: MachineDependencies,
): Promise<void> {
  snapshots.interrupt(record.id);
  if (keep) await files.quarantine(record.id, record.epoch ?? 0);
  else await files.remove(record.id);
  const at = (clock?.() ?? new Date()).toISOString();
  const details = { reason, epoch, ...(host !== undefined && { host }), ...(keep && { quarantine: true }) };
  store.machines.remove(record, eventOf(record, "moved_away", { at, details }));
}

/** Returns an event of a machine whose state stays as it is. */
export function eventOf(
  { state }: MachineRecord,
  type: RemarkName,
  { at, details }: Pick<MachineEvent, "at" | "details">,
): MachineEvent {
  return { at, type, from: state, to: state, details };
}
