/**
 * What the platform stores. Every call takes effect completely or not at all, and is durable when it returns. It throws
 * `unavailable` when the disk cannot be written. Calls are synchronous on purpose: nothing may come between deciding on
 * a transition and storing it.
 */
import type { AppNetwork } from "@hibernaut/domain/app-network";
import type { BuildLogEntry, BuildRecord, TemplateTag } from "@hibernaut/domain/build";
import type { OrderFailure } from "@hibernaut/domain/certificate";
import type { DrainRecord } from "@hibernaut/domain/drain";
import type { AppRecord, MachineEvent, MachineRecord, ReleaseRecord } from "@hibernaut/domain/machine";
import type { PeriodRange } from "@hibernaut/domain/periods";
import type { Preview } from "@hibernaut/domain/preview";
import type { QuotaOverrides } from "@hibernaut/domain/quota";
import type { Grant } from "@hibernaut/domain/scopes";
import type { StreamEvent, StreamFact } from "@hibernaut/domain/stream-event";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { Interval, StateChange, StoredState, Wake } from "@hibernaut/domain/timeline";
import type { Amounts, Rates } from "@hibernaut/domain/usage";
import type { VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import type { DeliveryStore, WebhookStore } from "./webhook-contract.ts";

export type { DeliveryStore, WebhookChanges, WebhookStore } from "./webhook-contract.ts";

/** A token for the API. Times are RFC 3339. */
export interface TokenRecord extends Grant {
  /** A short public id, for `tokens list` and `tokens revoke`. */
  id: string;
  name: string;
  /** SHA-256 of the token, hex. The token itself is never stored. */
  hash: string;
  createdAt: string;
  revokedAt: string | null;
  /** From then on it is not valid; null for never. */
  expiresAt: string | null;
  /** Known to the minute; null if it was not used yet. */
  lastUsedAt: string | null;
  /** The id of the token that a rotation made in its place. */
  replacedBy: string | null;
  /** It has the form that E2B's clients accept. */
  e2b?: true;
}

/** The apps. */
export interface AppStore {
  /** Adds an app. False when the name is taken. */
  insert(app: AppRecord): boolean;
  get(name: string): AppRecord | undefined;
  /**
   * Returns the sequence number of the event that told of the app's creation, 0 if that is forgotten: events before it are
   * of an earlier app of the same name.
   */
  firstEvent(name: string): number | undefined;
  /** Lists all apps, sorted by name. */
  list(): AppRecord[];
  /** Replaces the limits that the app has in place of the platform's. */
  setQuota(name: string, quota: QuotaOverrides): void;
  /** Lets anyone see how the app is, or nobody. */
  setStatusPage(name: string, on: boolean): void;
  /** Replaces until when a preview is there. */
  setPreview(name: string, preview: Preview): void;
  /** Lists the apps that share a network, sorted by name. Machines ask for names often, so this looks at no others. */
  inNetwork(network: string): AppRecord[];
  /** Replaces what the app is called in its network. */
  setNetwork(name: string, network: AppNetwork): void;
  /**
   * Deletes an app and the records of its destroyed machines. False when the app does not exist, or has volumes, templates
   * or machines that are not destroyed.
   */
  delete(name: string): boolean;
}

/** The machines and their events. */
export interface MachineStore {
  /**
   * Adds a machine with its first event. False when the id is taken, or the name by another machine of the app that is
   * not destroyed. Throws `not_found` when the app does not exist. `history` is what happened to it elsewhere, oldest first;
   * nobody is told of that.
   */
  insert(machine: MachineRecord, event: MachineEvent, history?: readonly MachineEvent[]): boolean;
  /**
   * Replaces a record and adds the event that explains the change, in one transaction. Durable when it returns; with
   * `unsynced`, a power cut may lose it until the next transaction that is durable.
   */
  update(machine: MachineRecord, event?: MachineEvent, options?: { unsynced: boolean }): void;
  /**
   * Forgets a machine that is no longer this host's, with its history. The event, which says why, is for the stream of
   * events alone.
   */
  remove(machine: MachineRecord, event: MachineEvent): void;
  get(id: string): MachineRecord | undefined;
  /** Lists the machines that are not destroyed, of one app or of all, oldest first. */
  list(app?: string): MachineRecord[];
  /** Lists up to `limit` events of a machine, newest first. */
  events(id: string, limit: number): MachineEvent[];
}

/** Which events to read; all where nothing is said. */
export interface StreamQuery {
  app?: string | null | undefined;
  /** Id of a machine. */
  machine?: string | null | undefined;
}

/** The stream of events, in the order in which they happened. Old ones are dropped when there are many. */
export interface OutboxStore {
  /** Adds an event that no other part of the store writes with a change of its own. */
  add(fact: StreamFact): void;
  /** Lists up to `limit` events after a sequence number, oldest first. */
  after(sequence: number, limit: number): StreamEvent[];
  /** Lists up to `limit` events before a sequence number, newest first. */
  before(sequence: number, query: StreamQuery, limit: number): StreamEvent[];
  /** The sequence number of the oldest event that is kept. Undefined without any. */
  oldest(): number | undefined;
  /** The sequence number of the newest event there ever was, 0 before the first. */
  newest(): number;
  /** Calls `listener` soon after events were added. Returns a function that ends that. */
  subscribe(listener: () => void): () => void;
}

/** The templates of apps. */
export interface TemplateStore {
  /** Adds a template. False when the app has one of that name, or is gone. */
  insert(template: TemplateRecord): boolean;
  get(id: string): TemplateRecord | undefined;
  /** Sets how many machines are kept ready. False when there is no such template. */
  setPool(id: string, size: number): boolean;
  /** Lists the templates of one app or of all, oldest first. */
  list(app?: string): TemplateRecord[];
  remove(template: TemplateRecord): void;
}

/** Builds of templates, and the names that lead to what they made. Both go with their app, a name also with its template. */
export interface BuildStore {
  /** Adds a build. False when its app is gone. */
  insert(build: BuildRecord): boolean;
  /** Replaces a build. False when it is gone. */
  update(build: BuildRecord): boolean;
  /**
   * Replaces a build that ends, keeps its log, and lets these names lead to what it made, in one transaction. False when it
   * is gone.
   */
  finish(build: BuildRecord, log: readonly BuildLogEntry[], tags: readonly TemplateTag[]): boolean;
  get(id: string): BuildRecord | undefined;
  /** What a build that has ended said. Empty before, and for one that is gone. */
  log(id: string): BuildLogEntry[];
  /** Lists the builds of one app or of all, oldest first. */
  list(app?: string): BuildRecord[];
  remove(id: string): void;
  /** Lets names lead to templates of their app, wherever they led before. */
  tag(tags: readonly TemplateTag[]): void;
  untag(app: string, name: string, tags: readonly string[]): void;
  /** Lists the names that an app has for templates, sorted. */
  tags(app: string): TemplateTag[];
}

/** When the paused VMM of a suspended machine was kept, in milliseconds since 1970. */
export interface KeptWarm extends Interval {
  machine: string;
}

/** A wake of any machine. */
export interface WakeOfApp extends Pick<Wake, "at" | "kind" | "durationMs"> {
  /** Counts up. */
  seq: number;
  app: string;
}

/** What machines did, for charts. Written with each change; old rows are dropped. Times are milliseconds since 1970. */
export interface TimelineStore {
  /** Lists the changes of a machine after a moment, in order. */
  states(machine: string, since: number): StateChange[];
  /** What the last change of a machine that is kept led to. */
  lastState(machine: string): StoredState | undefined;
  /** Lists the last wakes of a machine after a moment, up to `limit`, in order. */
  wakes(machine: string, since: number, limit: number): Wake[];
  /** Counts the wakes of a machine after a moment. */
  countWakes(machine: string, since: number): number;
  /** Lists when a machine was kept warm, as far as that ended after a moment, in order. */
  warm(machine: string, since: number): Interval[];
  /** Lists up to `limit` wakes of all machines, destroyed ones included, before a sequence number, newest first. */
  wakesBefore(sequence: number, limit: number): WakeOfApp[];
  /** Adds times for which VMMs were kept. */
  addWarm(kept: readonly KeptWarm[]): void;
}

/** The hostnames of apps. */
export interface HostnameStore {
  /** Lists all hostnames, sorted by name. */
  list(): { name: string; app: string }[];
  /** Adds a hostname. False when it is taken. */
  insert(name: string, app: string): boolean;
  /** Removes a hostname. False when the app does not have it. */
  remove(name: string, app: string): boolean;
}

/** The names at which people have signed in. */
export interface ReservedNameStore {
  list(): string[];
  /** Adds a name, or notes that it was used, at a time in milliseconds since 1970. Forgets others beyond `most`. */
  note(name: string, at: number, most: number): void;
}

/** A certificate that the platform manages. The certificate itself is a file. */
export interface CertificateRecord {
  /** A hostname, or `*.` and a hostname. */
  name: string;
  app: string;
  /** RFC 3339. */
  addedAt: string;
  /** The last order, if it failed. */
  failure: OrderFailure | null;
}

/** The certificates that the platform manages. They go with their apps. */
export interface CertificateStore {
  /** Lists all certificates, sorted by name. */
  list(): CertificateRecord[];
  get(name: string): CertificateRecord | undefined;
  /** Adds a certificate. False when there is one of the name, or no such app. */
  insert(certificate: CertificateRecord): boolean;
  /** Replaces the app and the failure. `outcome` is how an order ended, for the stream of events. */
  update(certificate: CertificateRecord, outcome?: "issued" | "failed"): void;
  /** Removes a certificate. False when there is none. */
  remove(name: string): boolean;
}

/** The releases of apps. */
export interface ReleaseStore {
  /** Adds a release with the app's next version, and drops the oldest beyond 100. */
  add(app: string, release: Omit<ReleaseRecord, "version">): ReleaseRecord;
  /** Lists up to `limit` releases of an app, newest first. */
  list(app: string, limit: number): ReleaseRecord[];
  /** Changes the outcome of a release. False when there is no such release. */
  update(app: string, version: number, status: ReleaseRecord["status"], description: string): boolean;
  /** Adds or replaces a release of a cluster, with its version. False when nothing has changed. */
  put(app: string, release: ReleaseRecord): boolean;
  /** Removes a release that a cluster no longer has. False when there is no such release. */
  remove(app: string, version: number): boolean;
}

/** A secret as it is stored. `ciphertext` ends with the authentication tag. */
export interface SecretRecord {
  app: string;
  name: string;
  ciphertext: Uint8Array;
  nonce: Uint8Array;
  digest: string;
  updatedAt: string;
}

/** The encrypted secrets of apps. */
export interface SecretStore {
  /** Lists an app's secrets, sorted by name. */
  list(app: string): SecretRecord[];
  /** Returns one secret of any app, to try a key on. Undefined when there are none. */
  any(): SecretRecord | undefined;
  /** Stores secrets, and replaces those of the same name. */
  set(secrets: readonly SecretRecord[]): void;
  /** Removes a secret. False when the app has no such secret. */
  remove(app: string, name: string): boolean;
}

/** The tokens for the API. */
export interface TokenStore {
  /** Adds a token. False when one of its apps does not exist. */
  insert(token: TokenRecord): boolean;
  /**
   * Adds a token in the place of another, which expires at `expiresAt`. False when one of the apps does not exist, or
   * the other token is revoked.
   */
  replace(id: string, token: TokenRecord, expiresAt: string): boolean;
  /** Notes when tokens were last used, by id, in one transaction. */
  used(times: ReadonlyMap<string, string>): void;
  /** Lists all tokens, including revoked ones, oldest first. */
  list(): TokenRecord[];
  findByHash(hash: string): TokenRecord | undefined;
  get(id: string): TokenRecord | undefined;
  /** Revokes a token and ends its sessions. False when it does not exist or is already revoked. */
  revoke(id: string, at: string): boolean;
  /** Adds or replaces a token of a cluster; of its apps, those that exist. If it is revoked, its sessions end. */
  put(token: TokenRecord): void;
  /** Removes a token that a cluster no longer has, and its sessions. False when there is no such token. */
  remove(id: string): boolean;
}

/** Someone who is signed in from a browser. Times are milliseconds since 1970. */
export interface SessionRecord {
  /** SHA-256 of the session's secret, hex. The secret itself is never stored. */
  hash: string;
  /** The token whose rights the session has. */
  tokenId: string;
  createdAt: number;
  /** Known to the minute. */
  usedAt: number;
}

/** What is forgotten when a session begins: those not used since a moment, and the longest unused beyond a number. */
export interface SessionLimits {
  usedSince: number;
  perToken: number;
  overall: number;
}

/** The sessions of browsers. They end with their tokens. */
export interface SessionStore {
  /** Adds a session, and forgets others beyond the limits. */
  insert(session: SessionRecord, limits: SessionLimits): void;
  find(hash: string): SessionRecord | undefined;
  /** Notes when a session was last used. */
  use(hash: string, at: number): void;
  /** Ends a session. False when there is none. */
  remove(hash: string): boolean;
}

/** The volumes of apps, and their snapshots. */
export interface VolumeStore {
  /** Adds a volume, which came from another host of the cluster with `movedIn`. False when the app does not exist. */
  insert(volume: VolumeRecord, how?: { movedIn: boolean }): boolean;
  /** Replaces a volume's size, state, retention, schedule and epoch. */
  update(volume: VolumeRecord): void;
  /** Removes a volume, which is on another host of the cluster now with `movedAway`. Throws while it has snapshots. */
  remove(id: string, how?: { movedAway: boolean }): void;
  get(id: string): VolumeRecord | undefined;
  /** Lists the volumes of one app or of all, oldest first. */
  list(app?: string): VolumeRecord[];
  insertSnapshot(snapshot: VolumeSnapshotRecord): void;
  /** Replaces a snapshot's size on the disk and state. */
  updateSnapshot(snapshot: VolumeSnapshotRecord): void;
  removeSnapshot(id: string): void;
  getSnapshot(id: string): VolumeSnapshotRecord | undefined;
  /** Lists a volume's snapshots, newest first. */
  listSnapshots(volumeId: string): VolumeSnapshotRecord[];
}

/** The drain, of which there is one at most. */
export interface DrainStore {
  get(): DrainRecord | undefined;
  set(drain: DrainRecord): void;
  clear(): void;
}

/** What a machine or volume uses at this moment, since its last change. */
export interface OpenUsage extends Rates {
  /** The id of the machine or volume. */
  subject: string;
  app: string;
  /** The machine that it counts for, or `volumes:<app>` for a volume that no machine has. */
  machine: string;
  /** Milliseconds since 1970. */
  since: number;
}

/** What usage is added up for: each machine, each app, or everything together. */
type UsageGrain = "machine" | "app" | "all";

/** Which sums to read. */
export interface UsageQuery {
  grain: UsageGrain;
  /** Up to three ranges of days and months, which don't overlap. See domain/periods.ts. */
  ranges: readonly PeriodRange[];
  /** Only one machine (`machine`), one app (`app`), or the machines of one app (`app` with the grain `machine`). */
  app?: string | undefined;
  machine?: string | undefined;
  /** One row per period instead of one per name. */
  byPeriod?: boolean;
}

/** Amounts that were added up, for a name or a period. */
export interface UsageSum extends Amounts {
  /** The machine or app; empty for everything, and for sums by period. */
  name: string;
  /** The day or month of sums by period, otherwise 0. */
  period: number;
}

/** What one machine moved through the proxy, in bytes. */
export interface Traffic {
  bytesIn: number;
  bytesOut: number;
}

/** Usage: written together with the changes of machines and volumes, and never deleted. */
export interface UsageStore {
  /** Returns what machines and volumes use now, of one app or of all. */
  open(app?: string): OpenUsage[];
  /** Returns sums of the intervals that have ended. */
  sums(query: UsageQuery): UsageSum[];
  /** Returns the app and the name of a machine that was ever metered, destroyed or not. */
  machine(id: string): { app: string; name: string } | undefined;
  /** Returns the app and name (null for volumes that no machine has) of everything metered, by the name in sums. */
  names(app?: string): Map<string, { app: string; title: string | null }>;
  /** Whether anything of an app of this name was ever metered. */
  knowsApp(app: string): boolean;
  /** Notes what the writable layer of a machine takes up on the disk, in MB. */
  measureLayer(machineId: string, layerMb: number): void;
  /** Adds what machines moved through the proxy to today. All of it or nothing. */
  addTraffic(traffic: ReadonlyMap<string, Traffic>): void;
}

/** Everything the platform stores, one repository for each kind of record. */
export interface Store {
  apps: AppStore;
  machines: MachineStore;
  outbox: OutboxStore;
  timeline: TimelineStore;
  tokens: TokenStore;
  sessions: SessionStore;
  hostnames: HostnameStore;
  reservedNames: ReservedNameStore;
  certificates: CertificateStore;
  secrets: SecretStore;
  releases: ReleaseStore;
  volumes: VolumeStore;
  templates: TemplateStore;
  builds: BuildStore;
  drain: DrainStore;
  usage: UsageStore;
  webhooks: WebhookStore;
  deliveries: DeliveryStore;
  /** Does all that `work` stores in one transaction: all of it is stored, or nothing. */
  together<T>(work: () => T): T;
  /** Throws when the database cannot be read or written. */
  check(): void;
  /** Writes a copy of everything, as of one moment, to a new file, while the store is used. */
  copyTo(file: string): Promise<void>;
  close(): void;
}
