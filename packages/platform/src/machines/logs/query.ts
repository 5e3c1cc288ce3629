/** What may be asked of logs. */
import type { LogEntry, LogStream } from "./entry.ts";

export interface LogQuery {
  /** The last so many of the lines that fit. */
  limit: number;
  /** Only lines from this moment on, in milliseconds since 1970. */
  sinceMs?: number;
  /** Only lines of these; all when absent. */
  streams?: readonly LogStream[];
  /** Goes on with what comes after, until the machine is destroyed. */
  follow?: boolean;
}

/** Whether a line is of a stream that was asked for. */
export function isWanted({ stream }: LogEntry, { streams }: LogQuery): boolean {
  return streams === undefined || streams.includes(stream);
}

/** Whether a line is from before the time that was asked for: all lines before it are then, too. */
export function isTooOld({ at }: LogEntry, { sinceMs }: LogQuery): boolean {
  return sinceMs !== undefined && Date.parse(at) < sinceMs;
}
