/** Whether a host is still a member of the cluster that it joined, and the directory is still that cluster's. */
import { HibernautError } from "@hibernaut/domain/errors";
import { keyFingerprint } from "@hibernaut/lib/certificates";
import type { Condition, Directory } from "./contract.ts";
import { type Home, placeText } from "./home.ts";
import { type ClusterRecord, KEYS, type MemberRecord } from "./keys.ts";
import { put, read, type Stored } from "./stored.ts";

/** Reads the cluster's record. Throws `failed_precondition` when the directory has none, or that of another cluster. */
export async function requireCluster(
  directory: Directory,
  { id, directory: place }: Pick<Home, "id" | "directory">,
  signal?: AbortSignal,
): Promise<ClusterRecord> {
  const record = (await read<ClusterRecord>(directory, KEYS.cluster, signal))?.value;
  if (record?.id === id) return record;
  const what = record === undefined ? "has no cluster's data" : `has the data of another cluster, ${record.id}`;
  throw new HibernautError(
    "failed_precondition",
    `The ${placeText(place)} ${what}; this host belongs to cluster ${id}. Start the etcd of that cluster again, or restore it from its own snapshot.`,
    { cluster_id: id, found: record?.id ?? null },
  );
}

/**
 * Reads this host's member record. Throws `failed_precondition` when the host has been removed from the cluster, or another
 * one has its name.
 */
export async function requireMember(
  directory: Directory,
  { host, identity }: Pick<Home, "host" | "identity">,
  signal?: AbortSignal,
): Promise<Stored<MemberRecord>> {
  const member = await read<MemberRecord>(directory, `${KEYS.members}${host}`, signal);
  if (member?.value.fingerprint === keyFingerprint(identity.key)) return member;
  const why =
    member === undefined
      ? `Host ${host} was removed from the cluster, or its record is not signed (docs/cluster.md#records-are-signed).`
      : `Another host has joined the cluster with the name ${host}.`;
  throw new HibernautError(
    "failed_precondition",
    `${why} Run \`hibernaut cluster leave --forget\` here, then join again with a new token if this host is to be a member.`,
    { host },
  );
}

/**
 * Returns the condition that this host's member record stays what it is, after it says how long the host's grace is, and that
 * its platform runs: other hosts need that when this one is lost, and so it is written before the host is first published.
 */
export async function memberWithGrace(
  directory: Directory,
  home: Pick<Home, "host" | "identity">,
  graceMs: number,
  signal: AbortSignal,
): Promise<Condition> {
  const found = await requireMember(directory, home, signal);
  const { stoppedAt, left: _left, ...member } = found.value;
  if (member.graceMs === graceMs && stoppedAt === undefined) return found;
  const revision = await directory.transact([found], [put(found.key, { ...member, graceMs })], signal);
  if (revision === undefined) throw new Error("this host's member record was changed at the same time");
  return { key: found.key, revision };
}
