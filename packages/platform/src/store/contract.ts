/**
 * What the platform stores. Every call is durable when it returns and all of one call happens or
 * none of it. Synchronous by intent: deciding and storing a transition must not be interleaved.
 */
import type { AppRecord, MachineEvent, MachineRecord, ReleaseRecord } from "../domain/machine.ts";
import type { VolumeRecord, VolumeSnapshotRecord } from "../domain/volume.ts";

export interface TokenRecord {
  /** Short public id, for `tokens list` and `tokens revoke`. */
  id: string;
  name: string;
  /** SHA-256 of the token, hex. The token itself is never stored. */
  hash: string;
  createdAt: string;
  revokedAt: string | null;
}

export interface AppStore {
  /** False when the name is taken. */
  insert(app: AppRecord): boolean;
  get(name: string): AppRecord | undefined;
  list(): AppRecord[];
  /** Deletes the app and the records of its destroyed machines; false when it does not exist or has live machines or volumes. */
  delete(name: string): boolean;
}

export interface MachineStore {
  /** False when the id, or the name among the app's live machines, is taken. */
  insert(machine: MachineRecord, event: MachineEvent): boolean;
  /** Replaces the record and adds the event that explains it, in one transaction. */
  update(machine: MachineRecord, event?: MachineEvent): void;
  get(id: string): MachineRecord | undefined;
  /** Machines that are not destroyed, oldest first; of one app when it is named. */
  list(app?: string): MachineRecord[];
  /** The newest events first, at most `limit`. */
  events(id: string, limit: number): MachineEvent[];
}

export interface HostnameStore {
  list(): { name: string; app: string }[];
  /** False when the name is taken. */
  insert(name: string, app: string): boolean;
  /** False when the app has no such name. */
  remove(name: string, app: string): boolean;
}

export interface ReleaseStore {
  /** Gives it the next version. */
  add(app: string, release: Omit<ReleaseRecord, "version">): ReleaseRecord;
  /** Newest first. */
  list(app: string, limit: number): ReleaseRecord[];
  /** False when there is no such release. */
  update(app: string, version: number, status: ReleaseRecord["status"], description: string): boolean;
}

/** A secret as it is stored; `ciphertext` ends with its tag. */
export interface SecretRecord {
  app: string;
  name: string;
  ciphertext: Uint8Array;
  nonce: Uint8Array;
  digest: string;
  updatedAt: string;
}

export interface SecretStore {
  /** By name. */
  list(app: string): SecretRecord[];
  /** Any one, of whatever app, to try a key on. */
  any(): SecretRecord | undefined;
  /** Stores all of them or none; what has the name already is replaced. */
  set(secrets: readonly SecretRecord[]): void;
  /** False when the app has no such secret. */
  remove(app: string, name: string): boolean;
}

export interface TokenStore {
  insert(token: TokenRecord): void;
  list(): TokenRecord[];
  findByHash(hash: string): TokenRecord | undefined;
  /** False when there is no such live token. */
  revoke(id: string, at: string): boolean;
}

export interface VolumeStore {
  /** False when there is no such app. */
  insert(volume: VolumeRecord): boolean;
  /** Replaces size and state. */
  update(volume: VolumeRecord): void;
  /** A volume that has snapshots cannot be. */
  remove(id: string): void;
  get(id: string): VolumeRecord | undefined;
  /** Oldest first; of one app when it is named. */
  list(app?: string): VolumeRecord[];
  insertSnapshot(snapshot: VolumeSnapshotRecord): void;
  /** Replaces size on the disk and state. */
  updateSnapshot(snapshot: VolumeSnapshotRecord): void;
  removeSnapshot(id: string): void;
  getSnapshot(id: string): VolumeSnapshotRecord | undefined;
  /** Newest first. */
  listSnapshots(volumeId: string): VolumeSnapshotRecord[];
}

export interface Store {
  apps: AppStore;
  machines: MachineStore;
  tokens: TokenStore;
  hostnames: HostnameStore;
  secrets: SecretStore;
  releases: ReleaseStore;
  volumes: VolumeStore;
  /** Fails when the database cannot be read or written. */
  check(): void;
  close(): void;
}
