/**
 * What the platform stores. Every call is durable when it returns and all of one call happens or
 * none of it. Synchronous by intent: deciding and storing a transition must not be interleaved.
 */
import type { AppRecord, MachineEvent, MachineRecord } from "../machines/types.ts";

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
  /** Deletes the app and the records of its destroyed machines; false when it does not exist or has live machines. */
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

export interface TokenStore {
  insert(token: TokenRecord): void;
  list(): TokenRecord[];
  findByHash(hash: string): TokenRecord | undefined;
  /** False when there is no such live token. */
  revoke(id: string, at: string): boolean;
}

export interface Store {
  apps: AppStore;
  machines: MachineStore;
  tokens: TokenStore;
  hostnames: HostnameStore;
  /** Fails when the database cannot be read or written. */
  check(): void;
  close(): void;
}
