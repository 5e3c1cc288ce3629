/** Lines of logs as they are kept and shown. Pure. */
import type { LogEntry } from "@hibernaut/client/browser";

/** Lines that are kept on a page. Older ones are in `hibernaut logs`. */
export const MOST_LINES = 2_000;
/** A line that is longer is cut: a browser lays out a megabyte of text in seconds, in characters. */
export const LONGEST_LINE = 4_000;

/** A line with a number of its own, which counts from the first. */
export interface LogLine extends LogEntry {
  number: number;
}

/** The last lines of a log. */
export class LogLines {
  #lines: LogLine[] = [];
  #count = 0;

  /** Adds a line, and forgets the oldest if there are too many. */
  add({ text, ...entry }: LogEntry): void {
    this.#count++;
    this.#lines.push({ ...entry, text: plainText(text), number: this.#count });
    // Not at every line: moving all of them takes longer than adding one.
    if (this.#lines.length > MOST_LINES * 1.25) this.#lines = this.#lines.slice(-MOST_LINES);
  }

  clear(): void {
    this.#lines = [];
    this.#count = 0;
  }

  /** How many were added. */
  get count(): number {
    return this.#count;
  }

  /** The last lines that contain the words, whatever their case. */
  matching(words: string): LogLine[] {
    const last = this.#lines.slice(-MOST_LINES);
    const wanted = words.trim().toLowerCase();
    return wanted === "" ? last : last.filter(({ text }) => text.toLowerCase().includes(wanted));
  }
}

/** The sequences that color a terminal, and characters that are not printed. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const UNPRINTED = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A line without what only a terminal understands. */
export function plainText(text: string): string {
  const plain = text.replace(SEQUENCES, "").replace(UNPRINTED, "");
  return plain.length > LONGEST_LINE ? `${plain.slice(0, LONGEST_LINE)}…` : plain;
}
