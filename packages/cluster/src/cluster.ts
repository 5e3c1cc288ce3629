/** A host's place in its cluster, as the rest of the platform sees it. A host alone has none. */
import type { ConnectionOptions } from "node:tls";
import type { Changed, Directory } from "./contract.ts";
import type { ClusterRecord, HostRecord, MemberRecord, MoveRecord, OwnerRecord, PublishedMachine } from "./keys.ts";

export interface ClusterHost {
  name: string;
  member: MemberRecord;
  /** Undefined while the host is away: its lease has ended. */
  up: HostRecord | undefined;
}

/** An {@link OwnerRecord} with the machine's id and its revision in the directory, for a swap. */
export interface Owned extends OwnerRecord {
  id: string;
  revision: number;
}

/** This host's copy of the directory, kept up to date by one watch. Reads are synchronous, and may be some milliseconds old. */
export interface View {
  /** All hosts, this one too, by name. */
  hosts(): ClusterHost[];
  host(name: string): ClusterHost | undefined;
  /** Who owns a machine, by its whole id. */
  owner(machineId: string): Owned | undefined;
  /** The machines of an app, or all, by id. */
  machines(app?: string): Owned[];
  /** What the owner last published. Undefined when that is void. */
  state(machineId: string): PublishedMachine | undefined;
  move(machineId: string): MoveRecord | undefined;
  /** The value of any key, parsed. */
  value(key: string): unknown;
  /** All keys of a prefix, sorted, parsed. */
  under(prefix: string): { key: string; value: unknown; revision: number }[];
  /** The revision of this copy. 0: the directory has not been read yet, and the copy is empty. */
  readonly revision: number;
  /** Since when this copy may be out of date, on the clock of `performance.now()`. Undefined while the watch is connected. */
  readonly staleSince: number | undefined;
  /**
   * Calls `listener` with the changes of keys under the prefix, after the view has adopted them. After a gap in the watch it
   * gets every difference. Returns a function that ends that.
   */
  subscribe(prefix: string, listener: (changes: readonly Changed[]) => void): () => void;
  /** Resolves once the view has adopted this revision. Rejects with the signal's reason. */
  reached(revision: number, signal?: AbortSignal): Promise<void>;
}

/** `live`: renewed in time. `grace`: the directory has been out of reach for less than the grace. `lost`: for longer. */
export type LeaseState = "live" | "grace" | "lost";

/** This host's lease, by its own steady clock, which never says `live` for longer than the directory does. */
export interface HostLease {
  readonly state: LeaseState;
  /** Counts the leases that this host had. What was read from the directory under an earlier one must be read again. */
  readonly term: number;
  subscribe(listener: (state: LeaseState) => void): () => void;
}

/** What a host asks of another one. */
export type PeerService = "api" | "proxy" | "tcp" | "peer";

/** How other hosts are reached: TLS with certificates of the cluster's authority on both sides. */
export interface Peers {
  /**
   * Returns how to connect to a service of a host; ALPN says which. Throws `host_unreachable` when the host is away or not
   * known.
   */
  target(host: string, service: PeerService): { host: string; port: number; tls: ConnectionOptions };
}

/** This host's place in the cluster. */
export interface Cluster {
  readonly host: string;
  readonly record: ClusterRecord;
  readonly directory: Directory;
  readonly view: View;
  readonly lease: HostLease;
  readonly peers: Peers;
}
