/**
 * The keys of a cluster's directory and what their values hold, as JSON. Everything in it is small: a host's own truth
 * (histories, logs, snapshots, disks) stays on that host.
 */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";
import type { TakenFrom } from "@hibernaut/machines";

export const ROOT = "/hib/";

/** In the data directory: what a host keeps of its cluster. A host alone has none, and loads nothing of clusters. */
export const CLUSTER_FOLDER = "cluster";

export const KEYS = {
  /** One {@link ClusterRecord}. Claimed once, by `hibernaut cluster init`. */
  cluster: `${ROOT}cluster`,
  /** {@link MemberRecord}s: the hosts that joined. Claimed once for each name. */
  members: `${ROOT}members/`,
  /** {@link HostRecord}s: the hosts that are up. Each lives as long as its host's lease. */
  hosts: `${ROOT}hosts/`,
  /** {@link JoinRecord}s, by the id of the join token. Each lives as long as its own lease. */
  joins: `${ROOT}joins/`,
  /** `AppRecord`s by name. */
  apps: `${ROOT}apps/`,
  /** `{ app }` by hostname. */
  hostnames: `${ROOT}hostnames/`,
  /** `TokenRecord`s by id, without when they were last used, which each host knows for itself. */
  tokens: `${ROOT}tokens/`,
  /** All encrypted secrets of an app, by app. */
  secrets: `${ROOT}secrets/`,
  /** `ReleaseRecord`s, by `<app>/<version>` with eight digits. */
  releases: `${ROOT}releases/`,
  /** {@link OwnerRecord}s by machine. Created with a claim, changed by swap alone. */
  machines: `${ROOT}machines/`,
  /** A machine's id, by `<app>/<machine name>`. Changed together with the machine. */
  names: `${ROOT}names/`,
  /** The id of the machine that has an address, by address. Changed together with the machine. */
  addresses: `${ROOT}addresses/`,
  /** {@link ConfigRecord}s by machine: what another host needs to start it without its owner. */
  configs: `${ROOT}configs/`,
  /** What owners publish of their machines: `PublishedMachine`s by machine. A cache, which an owner may write again at any time. */
  states: `${ROOT}states/`,
  /**
   * {@link ReleasedRecord}s by machine: it was destroyed, and did not vanish with an older copy of the directory. Each lives
   * as long as its own lease.
   */
  released: `${ROOT}released/`,
  /** {@link MoveRecord}s by machine. */
  moves: `${ROOT}moves/`,
  /** {@link VolumeOwner}s of the volumes that have moved, by `<app>/<id>`. They go with the app, and some time after the volume. */
  volumes: `${ROOT}volumes/`,
  /** {@link SharedTemplate}s, by `<app>/<id>`. */
  templates: `${ROOT}templates/`,
  /** A template's id, by `<app>/<template name>`. Changed together with the template. */
  templateNames: `${ROOT}template-names/`,
} as const;

export interface ClusterRecord {
  /** Random; hosts that joined another cluster refuse this one. */
  id: string;
  /** The region of all its hosts. */
  region: string;
  /** RFC 3339. */
  createdAt: string;
  /** The authority that signed the hosts' certificates, PEM. */
  authority: string;
  /** The machines' subnet on hosts with a bridge, as `a.b.c.d/n`. Absent when the first host could choose none. */
  subnet?: string | undefined;
}

/** A host that joined, whether it is up or not. */
export interface MemberRecord {
  /** SHA-256 of its certificate's public key, hex. */
  fingerprint: string;
  /** RFC 3339. */
  joinedAt: string;
  /** For how long the host starts machines after its lease has ended, in milliseconds. Absent until it is first up. */
  graceMs?: number;
  /**
   * When its platform was stopped while machines run on that others may otherwise recreate, RFC 3339. Absent once it is up
   * again.
   */
  stoppedAt?: string;
  /** Those machines' ids. Absent when they were not told: then it may be any of them. */
  left?: string[];
}

/** A host that is up. */
export interface HostRecord {
  name: string;
  /** Where other hosts reach it, `host:port`. */
  peer: string;
  region: string;
  version: string;
  /** What a snapshot must fit: `HypervisorIdentity` as JSON has it, and the version of the guest bundle. */
  hypervisor: Record<string, string>;
  guestBundle: string;
  /** Memory for machines in MB: all of it, and what is not promised to machines. Rounded, because every change is told to all. */
  memoryMb: { total: number; free: number };
  /** How many machines it owns. */
  machines: number;
  /** It takes no new machines. */
  draining: boolean;
  /** RFC 3339. */
  startedAt: string;
  /** Where its peer port, its API and its metrics are, `host:port`: no machine of any host may reach them. */
  control?: string[];
}

/** A join token that was not used yet. */
export interface JoinRecord {
  /** SHA-256 of its secret, hex. */
  hash: string;
  /** RFC 3339. */
  expiresAt: string;
}

/** Who owns a machine. */
export interface OwnerRecord {
  app: string;
  name: string;
  host: string;
  /** Counts the machine's owners. What has an older epoch than this is void. */
  epoch: number;
  /** The machine's address, which no other machine of the cluster has. */
  address: string;
  /** The owner was given up for lost: why. The new owner starts the machine cold, and says so. Absent in the usual case. */
  evacuated?: Evacuated;
}

/** A machine that was destroyed after it had been on several hosts. */
export interface ReleasedRecord {
  /** Of its last owner. */
  epoch: number;
  /** Its last owner. After a restore of the directory, two hosts may have had the same epoch. */
  host: string;
}

/** How a machine came to an owner that has none of its files. */
interface Evacuated {
  /** The host that was given up. */
  from: string;
  /** RFC 3339. */
  at: string;
  /** Whether it ran, as far as its owner had published: the new owner starts it then. */
  ran: boolean;
}

/** What a host needs to start a machine whose files are out of reach. */
export interface ConfigRecord {
  /** The machine's version, a ULID. */
  version: string;
  config: MachineConfig;
  imageDigest: string;
  /** RFC 3339. */
  createdAt: string;
}

/** A machine that is being moved. */
export interface MoveRecord {
  from: string;
  to: string;
  /** Of the owner that sends it. */
  epoch: number;
  /** A ULID. What an earlier attempt sent can never be taken for this one. */
  attempt: string;
  /** RFC 3339. */
  startedAt: string;
}

/**
 * Who has a volume that has moved. Written together with its machine's new owner. A volume that never moved is where it is
 * stored. What another host than this one has of it is void, until that host is removed.
 */
export interface VolumeOwner {
  host: string;
  /** Of the volume since then. */
  epoch: number;
  /** It is gone. A host that still has it with a machine that left is to know. Such a record lives with its own lease. */
  destroyed?: true;
}

/** A template, and which hosts have it. It goes when none has it any more. */
export interface SharedTemplate {
  id: string;
  app: string;
  /** The name is the template's only if the key of the name says so: two hosts may have had it before. */
  name: string;
  /** SHA-256 over what it consists of, hex: what another host gets must be exactly that. */
  digest: string;
  /** What is copied to another host at most, in bytes. */
  bytes: number;
  /** What its memory was taken from, and must fit where it is used. */
  taken: TakenFrom;
  /** Names of hosts, the one that made it first. One that is away has it still. */
  hosts: string[];
  /** No host may use it any more, and each deletes what it has. */
  ended?: true;
}

/** What an owner publishes of a machine. Void if the epoch is not the owner's. */
export interface PublishedMachine {
  epoch: number;
  state: MachineState;
  /** `TableMachine` of the proxy's messages, without the address. Null for a machine without a service. */
  route: unknown;
  /** Open requests, in the unit of its service, in coarse steps. */
  load: number;
}

/** Returns the last part of a key. */
export function nameOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
