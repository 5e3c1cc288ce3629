/**
 * A directory whose records have a message authentication code under a key that all hosts have, and the directory has not.
 * Who can write to the directory makes no record with it that a host would believe: neither a token for the API, nor one to
 * join with, nor a member, nor what a machine runs. What is not signed is not there.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Change, Changed, Condition, Directory, Entry, Lease, Listing } from "./contract.ts";
import { KEYS, ROOT } from "./keys.ts";

const KEY_BYTES = 32;
const BEGIN = '{"mac":"';
const MIDDLE = '","record":';
/** 32 bytes in base64url. */
const MAC_LENGTH = 43;

/** Signs records, and opens those that are signed. Pure. */
export class RecordSeal {
  readonly #key: Uint8Array;

  /** @param secretsKey may be wiped afterwards */
  constructor(secretsKey: Uint8Array, clusterId: string) {
    this.#key = new Uint8Array(hkdfSync("sha256", secretsKey, clusterId, "hibernaut cluster records", KEY_BYTES));
  }

  sign(key: string, value: string): string {
    return isOpen(key) ? value : `${BEGIN}${this.#macOf(key, value)}${MIDDLE}${value}}`;
  }

  /** The value of a record. Undefined when it was not signed with this key, or for another key of the directory. */
  open(key: string, text: string): string | undefined {
    if (isOpen(key)) return text;
    const start = BEGIN.length + MAC_LENGTH + MIDDLE.length;
    const mac = text.slice(BEGIN.length, BEGIN.length + MAC_LENGTH);
    const value = text.slice(start, -1);
    if (text !== `${BEGIN}${mac}${MIDDLE}${value}}` || mac.length !== MAC_LENGTH) return undefined;
    return timingSafeEqual(Buffer.from(mac), Buffer.from(this.#macOf(key, value))) ? value : undefined;
  }

  #macOf(key: string, value: string): string {
    // Unambiguous, because JSON has no zero byte.
    return createHmac("sha256", this.#key).update(`${value}\0${key}`).digest("base64url");
  }
}

/** The cluster's record says only which cluster it is, also to hosts of another one. */
function isOpen(key: string): boolean {
  return key === KEYS.cluster;
}

interface SignedOptions {
  directory: Directory;
  seal: RecordSeal;
  /** Is told of records that are not signed, once for each kind. Default: nobody. */
  onForged?: ((key: string) => void) | undefined;
}

export class SignedDirectory implements Directory {
  readonly #options: SignedOptions;
  /** The kinds of records of which one was not signed. */
  readonly #told = new Set<string>();

  constructor(options: SignedOptions) {
    this.#options = options;
  }

  async get(key: string, signal?: AbortSignal): Promise<Entry | undefined> {
    const entry = await this.#options.directory.get(key, signal);
    return entry && this.#opened(entry);
  }

  async list(prefix: string, signal?: AbortSignal): Promise<Listing> {
    const { entries, revision } = await this.#options.directory.list(prefix, signal);
    return { entries: entries.flatMap((entry) => this.#opened(entry) ?? []), revision };
  }

  transact(
    conditions: readonly Condition[],
    changes: readonly Change[],
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    const signed = changes.map((change) => {
      const { key, value } = change;
      return value === null ? change : { ...change, value: this.#options.seal.sign(key, value) };
    });
    return this.#options.directory.transact(conditions, signed, signal);
  }

  async *watch(prefix: string, after: number, signal: AbortSignal): AsyncIterable<readonly Changed[]> {
    for await (const changes of this.#options.directory.watch(prefix, after, signal))
      yield changes.map((change) => {
        const { key, value, revision } = change;
        if (value === null) return change;
        // A record that was overwritten with one that nobody may believe is gone, as it is for a read.
        return this.#opened({ key, value, revision }) ?? { key, value: null, revision };
      });
  }

  lease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    return this.#options.directory.lease(ttlMs, signal);
  }

  close(): Promise<void> {
    return this.#options.directory.close();
  }

  #opened({ key, value: text, revision }: Entry): Entry | undefined {
    const value = this.#options.seal.open(key, text);
    if (value !== undefined) return { key, value, revision };
    const kind = key.slice(ROOT.length).split("/", 1)[0] ?? "";
    if (!this.#told.has(kind) && key.startsWith(ROOT)) {
      this.#told.add(kind);
      this.#options.onForged?.(key);
    }
    return undefined;
  }
}
