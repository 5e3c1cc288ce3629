/** The end of a machine on a host that is not its owner any more. */
import type { MachineEvent, MachineRecord } from "@hibernaut/domain/machine";
import type { RemarkName } from "./decide/index.ts";
import type { MachineDependencies } from "./dependencies.ts";
import type { TakenAway } from "./ownership.ts";

/**
 * Moves the files of a machine, and of volumes that went with it, to quarantine, or deletes them, and then forgets their
 * records. Repeated after a crash in between.
 */
export async function forget(
  record: MachineRecord,
  { host, epoch, volumes: elsewhere, reason, keep }: Omit<TakenAway, "id">,
  { files, store, snapshots, volumes, clock }: MachineDependencies,
): Promise<void> {
  snapshots.interrupt(record.id);
  const { travel } = volumes;
  const gone = elsewhere.filter((volume) => travel.isOlder(volume)).map(({ id }) => id);
  if (keep) await files.quarantine(record.id, record.epoch ?? 0);
  else await files.remove(record.id);
  for (const id of gone)
    if (keep) await files.quarantineFolder(travel.folder(id), id, record.epoch ?? 0);
    else await travel.removeFiles(id);
  const at = (clock?.() ?? new Date()).toISOString();
  const details = { reason, epoch, ...(host !== undefined && { host }), ...(keep && { quarantine: true }) };
  const event = eventOf(record, "moved_away", { at, details });
  // A volume without its machine would be free for another one.
  store.together(() => {
    store.machines.remove(record, event);
    for (const id of gone) travel.forget(id);
  });
}

/** Returns an event of a machine whose state stays as it is. */
export function eventOf(
  { state }: MachineRecord,
  type: RemarkName,
  { at, details }: Pick<MachineEvent, "at" | "details">,
): MachineEvent {
  return { at, type, from: state, to: state, details };
}
