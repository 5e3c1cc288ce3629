/** A move in the cluster's directory: the intent, and the one transaction that makes the machine another host's. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { VolumeElsewhere } from "@hibernaut/machines";
import type { Directory } from "../contract.ts";
import { KEYS, type MoveRecord, type OwnerRecord } from "../keys.ts";
import { ownerOf, put } from "../ownership/claims.ts";
import { volumeKey } from "../ownership/volumes.ts";

/** Tries to change what someone else changes at the same time. */
const MOST_RACES = 10;

/** Whose a machine is, and whether it is being moved. */
export interface Standing {
  owner: (OwnerRecord & { revision: number }) | undefined;
  move: (MoveRecord & { revision: number }) | undefined;
}

/** Reads whose a machine is. */
export async function standingOf(id: string, directory: Directory): Promise<Standing> {
  // In this order: a commit deletes the move in the same transaction.
  const move = await directory.get(`${KEYS.moves}${id}`);
  const owner = await directory.get(`${KEYS.machines}${id}`);
  return {
    owner: owner && { ...ownerOf(owner), revision: owner.revision },
    move: move && { ...(JSON.parse(move.value) as MoveRecord), revision: move.revision },
  };
}

/**
 * Announces that a host moves a machine of its own. Replaces what an earlier move left, whose commit cannot happen any
 * more then. Returns the epoch that it moves from.
 */
export async function announce(id: string, intent: Omit<MoveRecord, "epoch">, directory: Directory): Promise<number> {
  for (let race = 0; race < MOST_RACES; race += 1) {
    const { owner, move } = await standingOf(id, directory);
    if (owner?.host !== intent.from)
      throw new HibernautError(
        "moved",
        `Machine ${id} is no longer on host ${intent.from}. Ask again: any host knows the new one.`,
        {
          machine_id: id,
        },
      );
    const conditions = [
      { key: `${KEYS.machines}${id}`, revision: owner.revision },
      { key: `${KEYS.moves}${id}`, revision: move?.revision ?? 0 },
    ];
    const record: MoveRecord = { ...intent, epoch: owner.epoch };
    if ((await directory.transact(conditions, [put(`${KEYS.moves}${id}`, record)])) !== undefined) return owner.epoch;
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
  const stands = owner?.host === from && owner.epoch === epoch;
  if (!stands || move?.to !== to || move.epoch !== epoch || move.attempt !== attempt) return false;
  const { revision, ...was } = owner;
  const { evacuated: _over, ...rest } = was;
  const done = await directory.transact(
    [
      { key: `${KEYS.machines}${id}`, revision },
      { key: `${KEYS.moves}${id}`, revision: move.revision },
    ],
    [
      put(`${KEYS.machines}${id}`, { ...rest, host: to, epoch: epoch + 1 }),
      { key: `${KEYS.moves}${id}`, value: null },
      ...volumes.map((volume) => put(volumeKey(owner.app, volume.id), { host: to, epoch: volume.epoch })),
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
    const ours = move !== undefined && move.epoch === epoch && (move.from === host || move.to === host);
    // A later attempt took the place of this one, which cannot be committed any more.
    if (!ours || (attempt !== undefined && move.attempt !== attempt)) return owner;
    const done = await directory.transact(
      [{ key: `${KEYS.moves}${id}`, revision: move.revision }],
      [{ key: `${KEYS.moves}${id}`, value: null }],
    );
    if (done !== undefined) return (await standingOf(id, directory)).owner;
  }
  throw new HibernautError("unavailable", `The move of machine ${id} could not be called off.`, { machine_id: id });
}
