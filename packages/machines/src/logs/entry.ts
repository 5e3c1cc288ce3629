/** One line of a machine's log, as users see it and as it is stored. */

/** The source of a line: the app, the image's hooks, or the platform itself. */
export const LOG_STREAMS = ["stdout", "stderr", "hooks", "platform"] as const;
export type LogStream = (typeof LOG_STREAMS)[number];

/** A line. Within one machine, times never go back, even if the host's clock does. */
export interface LogEntry {
  /** RFC 3339 with milliseconds: when the platform had received the whole line. */
  at: string;
  /** Id of the machine. */
  machine: string;
  stream: LogStream;
  /** The line without its newline. */
  text: string;
}

/** On disk, a line also records how many bytes of the app's output the log covers so far. */
export interface StoredEntry extends LogEntry {
  printed: number;
}

export function encodeEntry(entry: StoredEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** Parses a line; undefined when a full disk or the end of the platform cut it short. */
export function decodeEntry(line: string): StoredEntry | undefined {
  try {
    const entry = JSON.parse(line) as StoredEntry | null;
    return typeof entry?.at === "string" && typeof entry.text === "string" ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** The entry as users see it. */
export function shownEntry({ at, machine, stream, text }: StoredEntry): LogEntry {
  return { at, machine, stream, text };
}
