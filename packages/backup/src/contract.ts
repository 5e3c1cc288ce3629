/** Backups as the API uses them. */
import type { FailedCommand } from "./commands.ts";

/** How far the latest backup came. Times are RFC 3339. */
export interface BackupView {
  /** `none` since the platform started. */
  state: "none" | "running" | "complete" | "failed";
  startedAt: string | null;
  endedAt: string | null;
  /** Machines that are in it by now, and how many there are. */
  machinesDone: number;
  machines: number;
  /** Bytes that were sent. */
  bytes: number;
  /** The longest that a running machine was paused for it, in milliseconds. */
  longestPauseMs: number;
  /** Machines whose memory is not in it although they were running, with the reason. */
  withoutMemory: { id: string; app: string; reason: string }[];
  /** What apps wanted to do before they were backed up, and could not. */
  failedCommands: FailedCommand[];
  /** Why it failed. */
  error: { code: string; message: string } | null;
}

/** Makes backups, one at a time. */
export interface BackupService {
  /** Returns how far the latest backup came. */
  get(): BackupView;
  /**
   * Returns the archive piece by piece. What it needs on disk is deleted when it ends, fails or is no longer read. Throws
   * `failed_precondition` while another backup is made. A failure breaks it off, and {@link BackupService.get} says why.
   */
  create(signal: AbortSignal): AsyncIterable<Buffer>;
}
