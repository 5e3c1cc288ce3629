/** Gives up the copy of a disputed machine that this host keeps, because another machine is to be it, or has its place. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Cluster } from "../cluster.ts";
import type { Directory } from "../contract.ts";
import { KEYS } from "../keys.ts";
import type { PeerCall } from "../peer-call.ts";
import { read } from "../stored.ts";
import { find, nameKey } from "./claims.ts";
import type { Disputes } from "./disputes.ts";
import type { Custodian } from "./follow.ts";

interface DropDeps {
  cluster: Pick<Cluster, "directory" | "host">;
  custodian: Pick<Custodian, "record" | "volumes" | "takeAway">;
  disputes: Pick<Disputes, "list">;
  call: PeerCall;
}

/** What a host says about a machine that it owns. */
export interface HasCopy {
  stores: boolean;
  /** Of the volumes that were asked for, those that it has. */
  volumes?: string[];
}

/**
 * Moves the copy to quarantine, with those of its volumes of which the other host has a copy, too. Rejects with
 * `failed_precondition` unless another host owns the machine and has a copy of it to continue with, or another machine has
 * its name or its address: otherwise this one may be the last. Rejects with `host_unreachable` when that host does not say,
 * and with `aborted` when it changes while it is asked.
 */
export async function dropCopy(id: string, deps: DropDeps, signal: AbortSignal): Promise<void> {
  const { cluster, custodian, disputes, call } = deps;
  const { host, directory } = cluster;
  const refuse = (why: string, code: "failed_precondition" | "aborted" = "failed_precondition") => {
    const message = `Nothing was changed: ${why} See \`hibernaut cluster status\` on host ${host}.`;
    return new HibernautError(code, message, { machine_id: id, host });
  };
  const record = custodian.record(id);
  const reason = disputes.list().find(({ machine }) => machine === id)?.reason;
  if (record === undefined || (record.disputed !== true && reason === undefined))
    throw refuse(`host ${host} keeps no disputed copy of machine ${id}.`);
  const { owner } = await find(id, directory);
  if (owner === undefined) {
    const holder = await holderOf(record, directory);
    if (holder === undefined)
      throw refuse(
        reason ?? `no other host owns machine ${id} any more, and host ${host} claims it again in a few seconds.`,
      );
    // Its volumes are nobody else's.
    const why = `its copy here was dropped, because machine ${holder} has its name or its address`;
    return custodian.takeAway({ id, host: undefined, epoch: record.epoch ?? 0, volumes: [], reason: why, keep: true });
  }
  if (owner.host === host)
    throw refuse(`no other host owns machine ${id} any more, and host ${host} claims it again in a few seconds.`);
  const asked = custodian.volumes(id).map((volume) => volume.id);
  const has = (await call(owner.host, `/moves/${id}/has`, { json: { volumes: asked } }, signal)) as HasCopy;
  if (!has.stores)
    throw refuse(
      `host ${owner.host} has no copy of machine ${id} to continue with: it gives the machine back to host ${host} in a few seconds, or once it has destroyed its own.`,
    );
  // It may have been destroyed there since, and be this host's again. From here on, nothing else happens in between.
  const { owner: now } = await find(id, directory);
  if (now?.host !== owner.host || now.epoch !== owner.epoch || custodian.record(id)?.disputed !== true)
    throw refuse(`machine ${id} changed hands while host ${owner.host} was asked for its copy.`, "aborted");
  // Free copies of volumes would be in the way of those that the machine has there. Of others, these are the last.
  const volumes = custodian
    .volumes(id)
    .filter((volume) => has.volumes?.includes(volume.id))
    .map((volume) => ({ id: volume.id, epoch: Number.POSITIVE_INFINITY }));
  const why = `its copy here was dropped, and host ${owner.host} has the machine`;
  await custodian.takeAway({ id, host: owner.host, epoch: owner.epoch, volumes, reason: why, keep: true });
}

/** The other machine that has the name or the address of one that the directory has lost. */
async function holderOf(record: MachineRecord, directory: Directory): Promise<string | undefined> {
  for (const key of [nameKey(record), `${KEYS.addresses}${record.address}`]) {
    const holder = (await read<string>(directory, key))?.value;
    if (holder !== undefined && holder !== record.id) return holder;
  }
  return undefined;
}
