/** A move in the cluster's directory: the intent, and the one transaction that makes the machine another host's. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { VolumeElsewhere } from "@hibernaut/machines";
import type { Directory } from "../contract.ts";
import { KEYS, type MoveRecord, type OwnerRecord } from "../keys.ts";
import { elsewhere } from "../ownership/gate.ts";
import { volumeKey } from "../ownership/volumes.ts";
import { deletion, put, read } from "../stored.ts";

/** Tries to change what someone else changes at the same time. */
const MOST_RACES = 10;

/** Reads whose a machine is, and whether it is being moved. */
async function standingOf(id: string, directory: Directory) {
  // In this order: a commit deletes the move in the same transaction.
  const move = await read<MoveRecord>(directory, `${KEYS.moves}${id}`);
  return { move, owner: await read<OwnerRecord>(directory, `${KEYS.machines}${id}`) };
}

/**
 * Announces that a host moves a machine of its own. Replaces what an earlier move left, whose commit cannot happen any
 * more then. Returns the epoch that it moves from.
 */
export async function announce(id: string, intent: Omit<MoveRecord, "epoch">, directory: Directory): Promise<number> {
  for (let race = 0; race < MOST_RACES; race += 1) {
    const { owner, move } = await standingOf(id, directory);
    if (owner?.value.host !== intent.from) throw elsewhere(id, intent.from);
    const { epoch } = owner.value;
    const key = `${KEYS.moves}${id}`;
    const record: MoveRecord = { ...intent, epoch };
    const conditions = [owner, move ?? { key, revision: 0 }];
    if ((await directory.transact(conditions, [put(key, record)])) !== undefined) return epoch;
  }
  throw new HibernautError("aborted", `Machine ${id} changes hands at the moment. Try again in a second.`, {
    machine_id: id,
  });
}

/** Makes the machine and its volumes, with their next epochs, its new host's. Resolves with false when the move was called off. */
export async function commit(
  id: string,
  { from, to, epoch, attempt, volumes = [] }: Omit<MoveRecord, "startedAt"> & { volumes?: readonly VolumeElsewhere[] },
  directory: Directory,
): Promise<boolean> {
  const { owner, move } = await standingOf(id, directory);
  if (owner?.value.host !== from || owner.value.epoch !== epoch) return false;
  if (move?.value.to !== to || move.value.epoch !== epoch || move.value.attempt !== attempt) return false;
  const { evacuated: _over, ...rest } = owner.value;
  const done = await directory.transact(
    [owner, move],
    [
      put(owner.key, { ...rest, host: to, epoch: epoch + 1 }),
      deletion(move.key),
      ...volumes.map((volume) => put(volumeKey(rest.app, volume.id), { host: to, epoch: volume.epoch })),
    ],
  );
  return done !== undefined;
}

/**
 * Calls a move off, by the host that sends or the one that receives, unless it was committed. Without an attempt: whichever
 * there is between these hosts at this epoch. Resolves with whose the machine is, after which that cannot change any more by
 * this attempt. Rejects with `unavailable` while the directory does not answer: then nobody may touch the machine.
 */
export async function callOff(
  id: string,
  { host, epoch, attempt }: { host: string; epoch: number; attempt: string | undefined },
  directory: Directory,
): Promise<OwnerRecord | undefined> {
  for (let race = 0; race < MOST_RACES; race += 1) {
    const { owner, move } = await standingOf(id, directory);
    const isOurs = move?.value.epoch === epoch && (move.value.from === host || move.value.to === host);
    // A later attempt took the place of this one, which cannot be committed any more.
    if (!isOurs || (attempt !== undefined && move.value.attempt !== attempt)) return owner?.value;
    if ((await directory.transact([move], [deletion(move.key)])) !== undefined)
      return (await standingOf(id, directory)).owner?.value;
  }
  throw new HibernautError("unavailable", `The move of machine ${id} could not be called off.`, { machine_id: id });
}
