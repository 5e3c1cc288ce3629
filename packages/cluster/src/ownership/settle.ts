/** Compares what a host has stored with the cluster, before anything of it is touched. */
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { AnotherAddress, Settled } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { KEYS, nameOf, type OwnerRecord, type ReleasedRecord } from "../keys.ts";
import { read } from "../stored.ts";
import { type ClaimRecords, claim, wasDestroyed } from "./claims.ts";
import type { StartGate } from "./gate.ts";
import type { WarnLog } from "./retry.ts";
import { readVolumesElsewhere, type VolumeHere } from "./volumes.ts";

/** How long the platform waits for the directory when it starts, in milliseconds. */
const ANSWER_MS = 5_000;
/** States without a memory. */
const WITHOUT_MEMORY: ReadonlySet<MachineState> = new Set(["created", "stopped", "failed"]);

/**
 * What one stored machine is, by what the directory knows of it, not yet with its volumes. Pure. `claim`: the platform ended
 * before it was claimed, or an older copy of the directory took the directory's place, and has no owner, or an older claim of
 * this host: with an older epoch, another address, or an evacuation that is over.
 */
export function settled(record: MachineRecord, found: ClaimRecords, host: string): Settled | "claim" {
  const { owner } = found;
  const { disputed: isDisputed = false, ...plain } = record;
  const known = record.epoch ?? 0;
  if (owner === undefined) {
    // What was destroyed is the older copy of a disputed machine.
    if (isDisputed || record.epoch === undefined || !wasDestroyed(known, found, host)) return "claim";
    return { kind: "elsewhere", record, host: undefined, epoch: known, volumes: [] };
  }
  const { epoch } = owner;
  if (owner.host !== host) {
    // Epochs only count up, unless the directory is restored. Then the older copy may get as far as this one, and further.
    if (isDisputed || epoch <= known) return { kind: "unknown", record, why: olderText(record, owner) };
    return { kind: "elsewhere", record, host: owner.host, epoch, volumes: [] };
  }
  if (epoch < known) return "claim";
  // It went away from this host and came back without its files.
  if (owner.evacuated !== undefined && !isDisputed && record.epoch !== undefined && known < epoch)
    return { kind: "elsewhere", record, host, epoch, volumes: [] };
  if (owner.address !== record.address || owner.evacuated !== undefined) return "claim";
  return { kind: "own", record: { ...plain, epoch } };
}

function olderText({ id, app, epoch = 0 }: MachineRecord, owner: OwnerRecord): string {
  const older = owner.epoch < epoch ? "" : ", although that one continues an older copy";
  return (
    `Machine ${id} is kept here, and does not start: the cluster directory gives it to host ${owner.host} with epoch ${owner.epoch}, and this copy of it has epoch ${epoch}${older}. The directory was restored from an older backup. ` +
    `If host ${owner.host} has no copy of its own, it gives the machine back by itself as soon as its platform runs. Otherwise choose: to continue with the copy here, delete the older one with \`hibernaut machine destroy ${id} --app ${app} --force --no-wait\`; to continue with the older one, give the copy here up with \`hibernaut cluster drop ${id}\` on this host.`
  );
}

interface SettleContext {
  cluster: Cluster;
  gate: StartGate;
  log: WarnLog;
  /** Returns a free address other than these. */
  another: AnotherAddress;
}

/**
 * Settles all records. Never rejects: without an answer, they are `unknown`. So are those that the directory has lost, which
 * may be all of them: they are claimed again once the platform runs.
 */
export async function settle(records: readonly MachineRecord[], context: SettleContext): Promise<Settled[]> {
  const { cluster, log } = context;
  const unknown = (record: MachineRecord, why?: string): Settled => ({
    ...{ kind: "unknown", record },
    ...(why !== undefined && { why }),
  });
  const known = await readKnown(records, context);
  if (known === undefined) return records.map((record) => unknown(record));
  const all: Settled[] = [];
  let answers = true;
  for (const record of records) {
    const found = known(record.id);
    const one = settled(record, found, cluster.host);
    if (one !== "claim") all.push(one.kind === "elsewhere" ? await withVolumes(one, context) : one);
    else if (record.epoch !== undefined) all.push(unknown(record, toClaimText(record, found)));
    else if (!answers) all.push(unknown(record));
    else
      try {
        all.push(await completeClaim(record, context));
      } catch (error) {
        log.warn({ machine: record.id, reason: messageOf(error) }, "a machine could not be claimed yet");
        // Each further one would have to wait for as long.
        answers = false;
        all.push(unknown(record));
      }
  }
  return all;
}

/** Adds which of its volumes went along. Without an answer, nothing of the machine is touched. */
async function withVolumes(
  one: Settled & { kind: "elsewhere" },
  { cluster, log }: Pick<SettleContext, "cluster" | "log">,
): Promise<Settled> {
  const { record } = one;
  try {
    return { ...one, volumes: await readVolumesElsewhere(record, cluster.host, cluster.directory) };
  } catch (error) {
    log.warn({ machine: record.id, reason: messageOf(error) }, "where the volumes of a machine are is not known");
    return { kind: "unknown", record };
  }
}

/**
 * The platform ended between storing the machine and claiming it, or the directory has lost the claim. A new machine that
 * another took the name of was never anyone's. Rejects with `unavailable` when the directory does not answer.
 */
export async function completeClaim(
  record: MachineRecord,
  { cluster, gate, another, volumes }: Omit<SettleContext, "log"> & { volumes?: readonly VolumeHere[] },
): Promise<Settled> {
  const { directory, view } = cluster;
  const { id, state, epoch, address } = record;
  let isAddressTaken = false;
  const free = (taken: ReadonlySet<string>) => {
    // What is in a memory knows its address.
    isAddressTaken = !WITHOUT_MEMORY.has(state) || record.snapshot !== null;
    if (isAddressTaken) throw new HibernautError("aborted", `Another machine has the address ${address}.`);
    return another(taken);
  };
  try {
    const claimed = await claim(record, free, cluster, volumes);
    gate.add(id, claimed.epoch ?? 0);
    const { disputed: _over, ...plain } = claimed;
    return { kind: "own", record: plain };
  } catch (error) {
    if (isHibernautError(error, "unavailable") || !isHibernautError(error)) throw error;
    // One that was only being created is nobody's loss. Any other is kept, and does not start.
    if (state === "created" && epoch === undefined && isHibernautError(error, "already_exists", "not_found"))
      return { kind: "elsewhere", record, host: undefined, epoch: 0, volumes: [] };
    const named = isHibernautError(error, "already_exists") ? error.details.machine_id : undefined;
    const holder = isAddressTaken ? (await read<string>(directory, `${KEYS.addresses}${address}`))?.value : named;
    const what = isAddressTaken ? `its address, ${address}, which is in its memory` : "its name";
    const app = typeof holder === "string" ? view.owner(holder)?.app : undefined;
    const why =
      app === undefined
        ? error.message
        : `machine ${String(holder)} has ${what}. Destroy that one: \`hibernaut machine destroy ${String(holder)} --app ${app} --force\`.`;
    return { kind: "unknown", record, why: lostText(record, why) };
  }
}

function toClaimText({ id }: MachineRecord, { owner }: ClaimRecords): string {
  const what = owner === undefined ? "has lost it" : "has an older claim of it";
  return `Machine ${id} is kept here, and does not start yet: the cluster directory ${what}. This host claims it again in a few seconds.`;
}

function lostText({ id }: MachineRecord, why: string): string {
  return `Machine ${id} is kept here, and does not start: the cluster directory has lost it, and it cannot be claimed again: ${why} It is tried again every few seconds.`;
}

/** Reads what the directory knows of all machines. Undefined without an answer. */
async function readKnown(
  records: readonly MachineRecord[],
  { cluster, gate, log }: SettleContext,
): Promise<((id: string) => ClaimRecords) | undefined> {
  const late = delay(ANSWER_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the cluster directory did not answer within ${ANSWER_MS} ms`);
  });
  const readAll = async () => {
    const owners = await gate.read();
    // After the owners: a machine that was destroyed in between is found.
    const isComplete = records.every(({ id }) => owners.has(id));
    const { entries } = isComplete ? { entries: [] } : await cluster.directory.list(KEYS.released);
    const released = new Map(entries.map(({ key, value }) => [nameOf(key), JSON.parse(value) as ReleasedRecord]));
    return (id: string): ClaimRecords => ({ owner: owners.get(id), released: released.get(id) });
  };
  try {
    return await Promise.race([readAll(), late]);
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "which machines are this host's is not known; none starts until it is");
    return undefined;
  }
}
