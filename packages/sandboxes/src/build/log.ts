/** The log of a build, which never becomes larger than it may. */
import { StringDecoder } from "node:string_decoder";
import type { BuildLogEntry, BuildLogLevel } from "@hibernaut/domain/build";
import { BUILD_LOG_LEVELS } from "@hibernaut/domain/build";
import { ENTRIES_OF_FAULT, LOG_RESERVE, LONGEST_LINE, MOST_LOG_CHARACTERS, MOST_LOG_ENTRIES } from "./limits.ts";

// Colours and the like, which programs print, mean nothing in a list of entries.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed here
const CONTROLS = /\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]/g;

/** As much of what a program prints as its last entries can have. */
const LAST_CHARACTERS = ENTRIES_OF_FAULT * LONGEST_LINE;

/** Entries keep their numbers, so that clients can ask for what comes after the last one that they have. */
export class BuildLog {
  readonly #entries: BuildLogEntry[] = [];
  readonly #last: BuildLogEntry[] = [];
  readonly #now: () => number;
  #room = MOST_LOG_CHARACTERS;
  #full = false;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  get entries(): readonly BuildLogEntry[] {
    return this.#entries;
  }

  /** The last ones, also those that the log had no room for. */
  get last(): readonly BuildLogEntry[] {
    return this.#last;
  }

  /** What a program prints: the first part is kept, and the rest only as {@link last}. */
  add(step: string, level: BuildLogLevel, message: string): void {
    const entry = this.#entry(step, level, message);
    if (this.#full) return;
    this.#room -= entry.message.length;
    if (this.#entries.length < MOST_LOG_ENTRIES - LOG_RESERVE && this.#room >= 0) {
      this.#entries.push(entry);
      return;
    }
    this.#full = true;
    this.say(step, "warn", "The log of this build is full: what programs print from here on is not kept.");
  }

  /** What the platform says, for which there is always room. */
  say(step: string, level: BuildLogLevel, message: string): void {
    const entry = this.#entry(step, level, message.slice(0, LONGEST_LINE));
    if (this.#entries.length < MOST_LOG_ENTRIES) this.#entries.push(entry);
  }

  /** Takes the output of a program line by line. Call `end` when it is over. */
  lines(step: string, level: BuildLogLevel): { write(bytes: Buffer): void; end(): void } {
    const decoder = new StringDecoder("utf8");
    let rest = "";
    const take = (text: string) => {
      // Programs print more than anyone reads. Of what is not kept, only the end can become the reason of a fault.
      const parts = (this.#full ? (rest + text).slice(-LAST_CHARACTERS) : rest + text).split("\n");
      rest = parts.pop() ?? "";
      for (const line of this.#full ? parts.slice(-ENTRIES_OF_FAULT) : parts) this.#addLine(step, level, line);
      for (; rest.length > LONGEST_LINE; rest = rest.slice(LONGEST_LINE))
        this.#addLine(step, level, rest.slice(0, LONGEST_LINE));
    };
    return {
      write: (bytes) => take(decoder.write(bytes)),
      end: () => {
        take(decoder.end());
        if (rest !== "") this.#addLine(step, level, rest);
        rest = "";
      },
    };
  }

  #addLine(step: string, level: BuildLogLevel, line: string): void {
    // A program that draws its progress writes over the line.
    let end = line.length;
    while (line[end - 1] === "\r") end -= 1;
    const seen = line.slice(line.lastIndexOf("\r", end - 1) + 1, end);
    for (let at = 0; at === 0 || at < seen.length; at += LONGEST_LINE)
      this.add(step, level, seen.slice(at, at + LONGEST_LINE));
  }

  #entry(step: string, level: BuildLogLevel, message: string): BuildLogEntry {
    const timestamp = new Date(this.#now()).toISOString();
    const entry = { timestamp, level, message: message.replace(CONTROLS, ""), step };
    this.#last.push(entry);
    if (this.#last.length > ENTRIES_OF_FAULT) this.#last.shift();
    return entry;
  }
}

/** A part of a log: entries that are at least that important, from that one of them on. */
export function partOf(
  entries: readonly BuildLogEntry[],
  { offset, limit, level }: { offset: number; limit: number; level?: BuildLogLevel | undefined },
): BuildLogEntry[] {
  const least = level === undefined ? 0 : BUILD_LOG_LEVELS.indexOf(level);
  const important = entries.filter((entry) => BUILD_LOG_LEVELS.indexOf(entry.level) >= least);
  return important.slice(offset, offset + limit);
}
