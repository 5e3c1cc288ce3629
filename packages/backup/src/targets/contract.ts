/** Backups to targets as the API uses them. Times are RFC 3339. */
import type { Drill, LastRestore } from "../apps/results.ts";
import type { LocationKind } from "./location.ts";
import type { LastCheck, LastRun } from "./target-file.ts";

/** What a target is doing. */
export type Phase = "copying" | "verifying" | "deleting" | "checking" | "restoring" | "drilling";

/** A target without what must stay secret. */
export interface TargetView {
  name: string;
  url: string;
  kind: LocationKind;
  addedAt: string;
  schedule: string | null;
  keep: string | null;
  /** When the next backup is due; null without a schedule. */
  nextAt: string | null;
  /** Whether the latest good backup is older than the schedule promises. */
  overdue: boolean;
  running: { phase: Phase; startedAt: string } | null;
  last: (LastRun & { changed: string[] }) | null;
  lastSuccess: { at: string; set: string } | null;
  lastCheck: LastCheck | null;
  pruneError: string | null;
  /** When drills take place; null without a schedule. */
  drillSchedule: string | null;
  nextDrillAt: string | null;
  /** The latest drill of each app, the latest one first. */
  drills: readonly Drill[];
  /** The latest drill, also one that did not come as far as an app. */
  lastDrill: Drill | null;
  lastRestore: LastRestore | null;
  /** Backups that failed since the platform started. */
  failures: number;
}

/** A set at a target. */
export interface SetView {
  set: string;
  at: string;
  /** `incomplete`: it does not count. `unreadable`: its manifest cannot be used, for `reason`. */
  state: "complete" | "incomplete" | "unreadable";
  reason: string | null;
  /** Whether this platform made it. */
  own: boolean;
  host: string | null;
  version: string | null;
  apps: string[];
  machines: number;
  bytes: number;
  added: number;
  verified: { at: string; read: "pieces" | "sample" } | null;
}

/** What a new target is made of. */
export interface NewTarget {
  name: string;
  url: string;
  schedule?: string | undefined;
  keep?: string | undefined;
  /** The key of the repository. By default, a new repository gets a new one. */
  key?: string | undefined;
  accessKey?: string | undefined;
  secretKey?: string | undefined;
  sshKey?: string | undefined;
}

/** What can be changed of a target. Null removes. */
export interface TargetChanges {
  schedule?: string | null | undefined;
  keep?: string | null | undefined;
  drillSchedule?: string | null | undefined;
}

/** Keeps backups of the platform elsewhere. Calls reject with a HibernautError. */
export interface BackupTargetService {
  list(): Promise<TargetView[]>;
  /** Rejects with `not_found` when there is no such target. */
  get(name: string): Promise<TargetView>;
  /**
   * Adds a target once its repository was opened, or made where there is none. The key is returned if it was made here, and
   * never again.
   */
  add(target: NewTarget, signal: AbortSignal): Promise<{ target: TargetView; key: string | null }>;
  update(name: string, changes: TargetChanges): Promise<TargetView>;
  /** Forgets a target and its credentials. What is stored there stays. */
  remove(name: string): Promise<void>;
  /** Lists what is stored at a target, newest first. */
  sets(name: string, signal: AbortSignal): Promise<SetView[]>;
  /** Begins a backup. */
  start(name: string): Promise<TargetView>;
  /** Cancels the backup or the check that runs. False when none does. */
  cancel(name: string): Promise<boolean>;
  /** Begins a check of what is stored at a target. It reads all of it if that is wanted. */
  startCheck(name: string, readData: boolean): Promise<TargetView>;
}
