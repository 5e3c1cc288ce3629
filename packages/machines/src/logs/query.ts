/** A query about logs. */
import type { LogEntry, LogStream } from "./entry.ts";

export interface LogQuery {
  /** At most this many of the matching lines, the last ones. */
  limit: number;
  /** Only lines from this moment on, in milliseconds since 1970. */
  sinceMs?: number;
  /** Only lines of these streams; all when absent. */
  streams?: readonly LogStream[];
  /** Continue with new lines until the machine is destroyed. */
  follow?: boolean;
}

/** Whether a line belongs to a requested stream. */
export function isWanted({ stream }: LogEntry, { streams }: LogQuery): boolean {
  return streams === undefined || streams.includes(stream);
}

/** Whether a line is older than requested; all lines before it are then, too. */
export function isTooOld({ at }: LogEntry, { sinceMs }: LogQuery): boolean {
  return sinceMs !== undefined && Date.parse(at) < sinceMs;
}
