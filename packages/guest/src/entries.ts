/** What the agent says of a file: fields that end with a zero byte each, in the order of `packages/guest/agent/entries.h`. Pure. */
import { GuestError } from "./error.ts";

/** What there is at a path in a machine, as its agent says. */
export interface AgentEntry {
  /** `file`, `directory`, `link` or `other`; the guest may say anything. */
  kind: string;
  /** Bytes. */
  size: number;
  /** Permissions, with the bits for setuid, setgid and sticky. */
  mode: number;
  owner: string;
  group: string;
  /** Milliseconds since 1970. */
  modifiedMs: number;
  /** Absolute. */
  path: string;
  /** Of a link: the path that it leads to, or its text when it leads nowhere. Otherwise empty. */
  target: string;
  metadata: Record<string, string>;
}

/** The most attributes that a file may seem to have: the kernel allows 64 KiB of them, the shortest of some 16 bytes. */
export const MOST_ATTRIBUTES = 4096;
const MODES = 0o7777;
const NS_PER_MS = 1e6;

/** Reads fields one after the other. Throws {@link GuestError} for what makes no sense: the guest is not trusted. */
export class EntryFields {
  readonly #said: Buffer;
  #at = 0;

  constructor(said: Buffer) {
    this.#said = said;
  }

  /** Whether there is anything left to read. */
  get more(): boolean {
    return this.#at < this.#said.length;
  }

  /** Returns the next field. */
  next(): string {
    const end = this.#said.indexOf(0, this.#at);
    if (end < 0) throw nonsense();
    const field = this.#said.toString("utf8", this.#at, end);
    this.#at = end + 1;
    return field;
  }

  /** Returns the entry that the next fields are. */
  read(): AgentEntry {
    const [kind = "", size, mode = "0", owner = "", group = "", mtime, path = "", target = "", attributes] = Array.from(
      { length: 9 },
      () => this.next(),
    );
    const count = number(attributes);
    if (count > MOST_ATTRIBUTES) throw nonsense();
    const metadata: Record<string, string> = {};
    for (let index = 0; index < count; index += 1) metadata[this.next()] = this.next();
    const modifiedMs = Math.floor(number(mtime) / NS_PER_MS);
    const bits = Number.parseInt(mode, 8) & MODES;
    return { kind, size: number(size), mode: bits, owner, group, modifiedMs, path, target, metadata };
  }
}

function number(text: string | undefined): number {
  const value = Number(text);
  if (text === "" || !Number.isInteger(value) || value < 0) throw nonsense();
  return value;
}

function nonsense(): GuestError {
  return new GuestError("the machine's agent gave an answer that makes no sense");
}
