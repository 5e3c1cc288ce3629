/** Gives up the copy of a disputed machine that this host keeps, because the older one is to be the machine. */
import { HibernautError } from "../../domain/errors.ts";
import type { Cluster } from "../cluster.ts";
import type { PeerCall } from "../peer-call.ts";
import { find } from "./claims.ts";
import type { Custodian } from "./custodian.ts";

interface DropDeps {
  cluster: Pick<Cluster, "directory" | "host">;
  custodian: Pick<Custodian, "record" | "volumes" | "takeAway">;
  call: PeerCall;
}

/**
 * Moves the copy, with its volumes, to quarantine. Rejects with `failed_precondition` unless another host owns the machine and
 * has a copy of it to continue with: otherwise this one may be the last. Rejects with `host_unreachable` when that host does
 * not say, and with `aborted` when it changes while it is asked.
 */
export async function dropCopy(id: string, { cluster, custodian, call }: DropDeps, signal: AbortSignal): Promise<void> {
  const { host, directory } = cluster;
  const refuse = (why: string, code: "failed_precondition" | "aborted" = "failed_precondition") => {
    const message = `Nothing was changed: ${why} See \`hibernaut cluster status\` on host ${host}.`;
    return new HibernautError(code, message, { machine_id: id, host });
  };
  if (custodian.record(id)?.disputed !== true) throw refuse(`host ${host} keeps no disputed copy of machine ${id}.`);
  const { owner } = await find(id, directory);
  if (owner === undefined || owner.host === host)
    throw refuse(`no other host owns machine ${id} any more, and host ${host} claims it again in a few seconds.`);
  const { stores } = (await call(owner.host, `/moves/${id}/has`, { json: {} }, signal)) as { stores: boolean };
  if (!stores)
    throw refuse(
      `host ${owner.host} has no copy of machine ${id} to continue with: it gives the machine back to host ${host} in a few seconds, or once it has destroyed its own.`,
    );
  // It may have been destroyed there since, and be this host's again. From here on, nothing else happens in between.
  const { owner: now } = await find(id, directory);
  if (now?.host !== owner.host || now.epoch !== owner.epoch || custodian.record(id)?.disputed !== true)
    throw refuse(`machine ${id} changed hands while host ${owner.host} was asked for its copy.`, "aborted");
  // The copies of its volumes go along: free ones would be in the way of those that the machine has there.
  const volumes = custodian.volumes(id).map((volume) => ({ id: volume.id, epoch: Number.POSITIVE_INFINITY }));
  const reason = `its copy here was dropped, and host ${owner.host} has the machine`;
  await custodian.takeAway({ id, host: owner.host, epoch: owner.epoch, volumes, reason, keep: true });
}
