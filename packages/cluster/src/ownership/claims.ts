/**
 * Claims of machines: the machine, its name and its address change hands together or not at all. The host that holds the
 * claim may run the machine.
 */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { beingDeleted, type Deletable } from "../app-deletion.ts";
import type { Cluster } from "../cluster.ts";
import type { Change, Condition, Directory, Entry } from "../contract.ts";
import { type ConfigRecord, KEYS, type OwnerRecord, type ReleasedRecord } from "../keys.ts";
import { deletion, put, read, type Stored } from "../stored.ts";
import { type VolumeHere, volumeClaims } from "./volumes.ts";

/** Addresses that are tried: each further one means that another host took the one before in the same moment. */
const MOST_ADDRESSES = 10;
/** Tries to change a claim that someone else changes at the same time. */
const MOST_RACES = 10;
/**
 * For how long the directory remembers that a machine was destroyed, in milliseconds. A host that was away for longer takes
 * its old copy for a machine that the directory has lost, and claims it again.
 */
const RELEASED_MS = 30 * 24 * 60 * 60 * 1000;

export function nameKey({ app, name }: Pick<OwnerRecord, "app" | "name">): string {
  return `${KEYS.names}${app}/${name}`;
}

/** Returns the value of a key under `KEYS.machines`. */
export function ownerOf({ value }: Pick<Entry, "value">): OwnerRecord {
  return JSON.parse(value) as OwnerRecord;
}

/** Returns what another host needs to start the machine. */
export function configOf({ version, config, imageDigest, createdAt }: MachineRecord): ConfigRecord {
  return { version, config, imageDigest, createdAt };
}

/**
 * Claims the machine with the epoch that it has, or the first. See {@link Ownership.claim}. A claim that this host has
 * already is kept, and brought up to date if the directory is older. Rejects with `aborted` when another host
 * has it. `volumes` are those that the machine has here, if it is claimed again: they become this host's with it.
 */
export async function claim(
  record: MachineRecord,
  another: (taken: ReadonlySet<string>) => string,
  { directory, host }: Pick<Cluster, "directory" | "host">,
  volumes: readonly VolumeHere[] = [],
): Promise<MachineRecord> {
  const { id, app, name } = record;
  const taken = new Set<string>();
  let { address } = record;
  for (let attempt = 0; attempt < MOST_ADDRESSES; attempt += 1) {
    const itsApp = await read<Deletable>(directory, `${KEYS.apps}${app}`);
    if (itsApp === undefined) throw noApp(app);
    if (itsApp.value.deleting === true) throw beingDeleted(app);
    const above = await aboveReleased(record, directory);
    const owner: OwnerRecord = { app, name, host, epoch: Math.max(record.epoch ?? 1, above.epoch), address };
    const absent = [`${KEYS.machines}${id}`, nameKey(record), `${KEYS.addresses}${address}`];
    const along = await volumeClaims(app, volumes, { directory, host });
    const done = await directory.transact(
      [itsApp, ...above.conditions, ...along.conditions, ...absent.map((key) => ({ key, revision: 0 }))],
      [
        ...along.changes,
        put(`${KEYS.machines}${id}`, owner),
        put(nameKey(record), id),
        put(`${KEYS.addresses}${address}`, id),
        put(`${KEYS.configs}${id}`, configOf(record)),
      ],
    );
    if (done !== undefined) return { ...record, address, epoch: owner.epoch };
    const found = await read<OwnerRecord>(directory, `${KEYS.machines}${id}`);
    if (found !== undefined) {
      if (found.value.host !== host) throw busy(id);
      // What a machine was never told is as it was claimed. Otherwise its own address counts: it may be in its memory.
      const wanted = record.epoch === undefined ? found.value.address : address;
      const kept = await keep({ ...record, address: wanted }, { found, along }, directory);
      if (kept === "address taken") {
        taken.add(wanted);
        address = another(taken);
      } else if (kept !== undefined) return kept;
      continue;
    }
    await requireFreeName(record, directory);
    if ((await directory.get(`${KEYS.addresses}${address}`)) === undefined) continue;
    taken.add(address);
    address = another(taken);
  }
  throw new HibernautError(
    "aborted",
    `Machine ${name} of app ${app} got no address: other hosts changed the same things ${MOST_ADDRESSES} times in the same moment. Try again.`,
  );
}

/**
 * Makes a claim that this host has already the machine's as it is stored here: with its epoch, unless that is older, with its
 * address, and without what an evacuation noted, which is over. Resolves with undefined when something changed meanwhile.
 */
async function keep(
  record: MachineRecord,
  { found, along }: { found: Stored<OwnerRecord>; along: Awaited<ReturnType<typeof volumeClaims>> },
  directory: Directory,
): Promise<MachineRecord | "address taken" | undefined> {
  const { id, address } = record;
  const mine = found.value;
  const { evacuated, ...plain } = mine;
  const epoch = Math.max(mine.epoch, record.epoch ?? 0);
  const kept = { ...record, epoch };
  const isSame = epoch === mine.epoch && address === mine.address && evacuated === undefined;
  if (isSame && along.changes.length === 0) return kept;
  const conditions: Condition[] = [found, ...along.conditions];
  const changes: Change[] = [put(found.key, { ...plain, epoch, address }), ...along.changes];
  if (address !== mine.address) {
    const key = `${KEYS.addresses}${address}`;
    const held = await read<string>(directory, key);
    const before = await read<string>(directory, `${KEYS.addresses}${mine.address}`);
    if (held !== undefined && held.value !== id) return "address taken";
    conditions.push({ key, revision: held?.revision ?? 0 });
    changes.push(put(key, id));
    if (before?.value === id) {
      conditions.push(before);
      changes.push(deletion(before.key));
    }
  }
  return (await directory.transact(conditions, changes)) === undefined ? undefined : kept;
}

/**
 * Deletes the claim if it is this host's, with all that belongs to it. A machine that has another owner, or an epoch above
 * `upTo`, because it came back meanwhile, is left alone.
 */
export async function release(
  id: string,
  { directory, host }: { directory: Directory; host: string },
  upTo = Number.POSITIVE_INFINITY,
): Promise<"released" | "not ours"> {
  for (let race = 0; race < MOST_RACES; race += 1) {
    const claimed = await read<OwnerRecord>(directory, `${KEYS.machines}${id}`);
    if (claimed === undefined) return "released";
    const owner = claimed.value;
    if (owner.host !== host || owner.epoch > upTo) return "not ours";
    const keys = [claimed.key, ...[KEYS.configs, KEYS.states, KEYS.moves].map((prefix) => prefix + id)];
    for (const key of [nameKey(owner), `${KEYS.addresses}${owner.address}`])
      if ((await read<string>(directory, key))?.value === id) keys.push(key);
    const gone = keys.map(deletion);
    // No other host ever had a machine of the first epoch.
    if (owner.epoch > 1) {
      const released: ReleasedRecord = { epoch: owner.epoch, host };
      gone.push({ ...put(`${KEYS.released}${id}`, released), lease: await directory.lease(RELEASED_MS) });
    }
    if ((await directory.transact([claimed], gone)) !== undefined) return "released";
  }
  throw busy(id);
}

/** What the directory knows of a machine. */
export interface ClaimRecords {
  owner: OwnerRecord | undefined;
  /** Absent unless there is no owner. */
  released?: ReleasedRecord | undefined;
}

/**
 * Whether a machine that this host has with this epoch, and that has no owner, was destroyed. Otherwise the directory has lost
 * it, or what was destroyed is another host's copy of the same epoch. Pure.
 */
export function wasDestroyed(epoch: number, { owner, released }: ClaimRecords, host: string): boolean {
  if (owner !== undefined || released === undefined) return false;
  return released.epoch > epoch || (released.epoch === epoch && released.host === host);
}

/** Reads what the directory knows of a machine. */
export async function find(id: string, directory: Directory): Promise<ClaimRecords> {
  const owner = (await read<OwnerRecord>(directory, `${KEYS.machines}${id}`))?.value;
  if (owner !== undefined) return { owner };
  return { owner, released: (await read<ReleasedRecord>(directory, `${KEYS.released}${id}`))?.value };
}

/** Claims another address for a machine of this host. Resolves with it. */
export async function readdress(
  record: MachineRecord,
  another: (taken: ReadonlySet<string>) => string,
  { directory, host }: { directory: Directory; host: string },
): Promise<string> {
  const taken = new Set<string>();
  for (let race = 0; race < MOST_RACES; race += 1) {
    const claimed = await read<OwnerRecord>(directory, `${KEYS.machines}${record.id}`);
    if (claimed?.value.host !== host) throw busy(record.id);
    const address = another(taken);
    const changes = [
      put(claimed.key, { ...claimed.value, address }),
      put(`${KEYS.addresses}${address}`, record.id),
      deletion(`${KEYS.addresses}${claimed.value.address}`),
    ];
    const free = { key: `${KEYS.addresses}${address}`, revision: 0 };
    if ((await directory.transact([claimed, free], changes)) !== undefined) return address;
    taken.add(address);
  }
  throw busy(record.id);
}

/** The first epoch that no destroyed copy of the machine had, and what must be unchanged for that to stay true. */
async function aboveReleased(
  { id, epoch }: MachineRecord,
  directory: Directory,
): Promise<{ epoch: number; conditions: Condition[] }> {
  // One that was never claimed has no other copy.
  if (epoch === undefined) return { epoch: 1, conditions: [] };
  const key = `${KEYS.released}${id}`;
  const released = await read<ReleasedRecord>(directory, key);
  return { epoch: (released?.value.epoch ?? 0) + 1, conditions: [{ key, revision: released?.revision ?? 0 }] };
}

async function requireFreeName({ id, app, name }: MachineRecord, directory: Directory): Promise<void> {
  const holder = (await read<string>(directory, nameKey({ app, name })))?.value;
  if (holder === undefined || holder === id) return;
  const message = `App ${app} already has a machine named ${name} (${holder}). Choose another name.`;
  throw new HibernautError("already_exists", message, { machine_id: holder });
}

function noApp(app: string): HibernautError {
  return new HibernautError("not_found", `There is no app ${app}: it was deleted meanwhile. Create it again first.`, {
    app_name: app,
  });
}

function busy(id: string): HibernautError {
  return new HibernautError(
    "aborted",
    `Machine ${id} changes hands in the cluster at the moment. Try again in a second.`,
    { machine_id: id },
  );
}
