/** Why machines are not moved, in sentences. */
import { HibernautError } from "@hibernaut/domain/errors";
import { MoveUnsettled } from "@hibernaut/machines";
import type { VolumePapers } from "@hibernaut/volumes";
import type { Cluster } from "../cluster.ts";

const BYTES_PER_MB = 1024 * 1024;

/** Throws unless the host is another one, is up and takes machines. */
export function requireTarget(to: string, { host, view }: Pick<Cluster, "host" | "view">): void {
  const problem = (text: string) => new HibernautError("invalid_argument", text, { field: "host", value: to });
  if (to === host) throw problem(`The machine is on host ${to} already.`);
  const found = view.host(to);
  if (found === undefined) throw problem(`The cluster has no host ${to}. See \`hibernaut cluster status\`.`);
  if (found.up === undefined)
    throw new HibernautError("host_unreachable", `Host ${to} is away. Start its platform, or choose another host.`, {
      host: to,
    });
  if (found.up.draining)
    throw new HibernautError(
      "failed_precondition",
      `Host ${to} is draining and takes no machines. Choose another host.`,
      {
        host: to,
      },
    );
}

/** Throws `failed_precondition` for a machine with volumes, with what they are and what to do. */
export function requireNoVolumes(id: string, volumes: readonly VolumePapers[]): void {
  if (volumes.length === 0) return;
  const mb = (bytes: number) => Math.ceil(bytes / BYTES_PER_MB);
  const each = volumes.map(
    ({ volume, snapshots, bytes }) =>
      `${volume.name} (${volume.id}, ${volume.sizeGb} GB, of which ${mb(bytes)} MB are to be copied${snapshots.length === 0 ? "" : ` with ${snapshots.length} snapshot${snapshots.length === 1 ? "" : "s"}`})`,
  );
  throw new HibernautError(
    "failed_precondition",
    `Machine ${id} has volumes: ${each.join(", ")}. Add --with-volumes (with_volumes in the API) to move them along.`,
    { machine_id: id, volumes: volumes.map(({ volume, bytes }) => ({ id: volume.id, bytes })) },
  );
}

export function volumesUnfit(id: string, to: string, reason: string): HibernautError {
  const message = `Machine ${id} cannot move to host ${to} with its volumes: ${reason}. It stays where it was. Choose another host, or try again once that has changed.`;
  return new HibernautError("failed_precondition", message, { machine_id: id, host: to, reason });
}

/** The platform ended before it was known whose the machine is. */
export function unsettled(id: string, to: string, cause: unknown): MoveUnsettled {
  const message = `The platform is shutting down, and whether machine ${id} is on host ${to} is not known. See \`hibernaut machine list\` in a minute.`;
  return new MoveUnsettled("unavailable", message, { machine_id: id }, { cause });
}

/** The directory knows nothing of the machine any more, and not that it was destroyed. */
export function forgotten(id: string, to: string): HibernautError {
  const message = `The cluster directory lost machine ${id} during its move to host ${to}: was it restored from a backup? The machine is kept here. See \`hibernaut cluster status\`, and try again.`;
  return new HibernautError("aborted", message, { machine_id: id });
}

/** The machine became another host's than the one it was moved to; `host` is undefined when it was destroyed. */
export function takenMeanwhile(id: string, host: string | undefined): HibernautError {
  const whose = host === undefined ? "was destroyed" : `was given to host ${host}`;
  const message = `Machine ${id} ${whose} during its move. See \`hibernaut machine list\`.`;
  return new HibernautError("aborted", message, { machine_id: id });
}

/** The other host keeps a copy that the cluster's directory does not give to it, and that nobody gives up by itself. */
export function disputedHere(id: string, host: string): HibernautError {
  const message = `Host ${host} keeps another copy of machine ${id}, which is disputed: the cluster directory was restored from an older backup. Choose another host, or decide between the copies: \`hibernaut cluster status\` on host ${host} says how.`;
  // The reason lets a drain ask the next host.
  return new HibernautError("failed_precondition", message, { machine_id: id, host, reason: "disputed" });
}

export function beingMoved(id: string, to: string): HibernautError {
  const message = `Machine ${id} is being moved to host ${to} already. Wait until that is done.`;
  return new HibernautError("aborted", message, { machine_id: id, host: to });
}

export function notWhole(id: string, what: string): HibernautError {
  const message = `Machine ${id} did not arrive as a whole, and stays where it was: ${what}. Try again; if that does not help, look at the logs of both hosts.`;
  return new HibernautError("unavailable", message, { machine_id: id });
}

export function notStored(id: string, host: string, error: Error): HibernautError {
  const message = `Host ${host} cannot store the memory of machine ${id}, which stays where it was: ${error.message}. Look at the disk there, or choose another host.`;
  return new HibernautError("unavailable", message, { machine_id: id, host }, { cause: error });
}
