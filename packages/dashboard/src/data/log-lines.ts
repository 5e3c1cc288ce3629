/** Lines of logs as they are kept and shown. Pure. */
import type { LogEntry, LogStream } from "@hibernaut/client/browser";

/** Lines that are kept on a page. Older ones are in `hibernaut logs`. */
export const MOST_LINES = 2_000;
/** A line that is longer is cut: a browser lays out a megabyte of text in seconds, in characters. */
export const LONGEST_LINE = 4_000;

/** Which lines someone wants to see. */
export interface LogChoice {
  /** A machine's id. Empty: all. */
  machine: string;
  stream: "all" | LogStream;
}

/** A line with a number of its own, which counts from the first. */
export interface LogLine extends LogEntry {
  number: number;
}

/** The last lines of a log. */
export class LogLines {
  #lines: LogLine[] = [];
  #count = 0;
  /** What the lines were read with. Undefined before the first reading. */
  #choice: LogChoice | undefined;
  /** Where the present reading continues, in milliseconds since 1970, and the lines of that moment that are there. */
  #from = -Infinity;
  readonly #there = new Map<string, number>();

  /**
   * Prepares for reading lines with this choice. Returns since when: the time of the last line, or undefined for the last
   * lines. Forgets what was read with another choice.
   */
  continueWith(choice: LogChoice): string | undefined {
    if (this.#choice?.machine !== choice.machine || this.#choice.stream !== choice.stream) {
      this.#lines = [];
      this.#count = 0;
    }
    this.#choice = choice;
    this.#there.clear();
    const since = this.#lines.at(-1)?.at;
    if (since === undefined) return undefined;
    this.#from = Date.parse(since);
    for (const line of this.#lines)
      if (Date.parse(line.at) === this.#from) this.#there.set(keyOf(line), (this.#there.get(keyOf(line)) ?? 0) + 1);
    return since;
  }

  /** Whether all lines of this choice are among those that were read. */
  covers({ machine, stream }: LogChoice): boolean {
    const { machine: ofMachine, stream: ofStream } = this.#choice ?? {};
    return (ofMachine === "" || ofMachine === machine) && (ofStream === "all" || ofStream === stream);
  }

  /** Adds a line unless it is there, and forgets the oldest if there are too many. */
  add({ text, ...entry }: LogEntry): void {
    const line = { ...entry, text: plainText(text) };
    if (this.#isThere(line)) return;
    this.#count++;
    this.#lines.push({ ...line, number: this.#count });
    // Not at every line: moving all of them takes longer than adding one.
    if (this.#lines.length > MOST_LINES * 1.25) this.#lines = this.#lines.slice(-MOST_LINES);
  }

  /** How many were added. */
  get count(): number {
    return this.#count;
  }

  /** The last lines of this choice that contain the words, whatever their case. */
  matching(words: string, { machine, stream }: LogChoice): LogLine[] {
    const wanted = words.trim().toLowerCase();
    return this.#lines
      .slice(-MOST_LINES)
      .filter(
        (line) =>
          (machine === "" || line.machine === machine) &&
          (stream === "all" || line.stream === stream) &&
          (wanted === "" || line.text.toLowerCase().includes(wanted)),
      );
  }

  /**
   * A reading that continues brings all lines of the moment of the last one again. The known ones are the last of that
   * moment that were read: what comes before they are through is older.
   */
  #isThere(line: LogEntry): boolean {
    if (this.#there.size === 0) return false;
    if (Date.parse(line.at) > this.#from) {
      this.#there.clear();
      return false;
    }
    const key = keyOf(line);
    const left = (this.#there.get(key) ?? 0) - 1;
    if (left > 0) this.#there.set(key, left);
    else this.#there.delete(key);
    return true;
  }
}

function keyOf({ machine, stream, text }: LogEntry): string {
  return `${machine} ${stream} ${text}`;
}

/** The sequences that color a terminal, and characters that are not printed. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const UNPRINTED = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A line without what only a terminal understands. */
export function plainText(text: string): string {
  const plain = text.replace(SEQUENCES, "").replace(UNPRINTED, "");
  return plain.length > LONGEST_LINE ? `${plain.slice(0, LONGEST_LINE)}…` : plain;
}
