/**
 * This host's copy of the records that all hosts share, with their revisions. Changes come from the watch, and from this
 * host's own writes, which are adopted at once; whatever comes late or twice changes nothing.
 */
import type { View } from "../cluster.ts";
import type { Changed } from "../contract.ts";
import { KEYS, ROOT } from "../keys.ts";
import { AGREED_PREFIXES } from "./records.ts";

/** A key at the revision at which it was last changed. Deleted keys are undefined. */
interface Held {
  value: object | undefined;
  revision: number;
}

/** Keys with their new values; undefined: deleted. */
export type Changes = ReadonlyMap<string, object | undefined>;

interface CopyOptions {
  view: Pick<View, "subscribe" | "under" | "value">;
  /** Called with what changed. With `whole`, `changes` are all records there are. */
  apply(changes: Changes, how: { whole: boolean }): void;
}

export class AgreedCopy {
  readonly #options: CopyOptions;
  readonly #held = new Map<string, Held>();
  #ready = false;

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  /** Whether the directory has answered since the platform's start. Until then the copy is empty. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Begins to follow the view. Returns a function that ends that. */
  start(): () => void {
    const end = this.#options.view.subscribe(ROOT, (changes) => (this.#ready ? this.#follow(changes) : this.#begin()));
    this.#begin();
    return end;
  }

  get(key: string): object | undefined {
    return this.#held.get(key)?.value;
  }

  /** The revision at which the key got its value; 0 if there is no such key. */
  revisionOf(key: string): number {
    const held = this.#held.get(key);
    return held?.value === undefined ? 0 : held.revision;
  }

  /** All keys of a prefix, sorted. */
  under(prefix: string): { key: string; value: object }[] {
    return [...this.#held]
      .flatMap(([key, { value }]) => (value !== undefined && key.startsWith(prefix) ? [{ key, value }] : []))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Adopts changes that this host knows of before the watch tells of them. */
  adopt(changes: readonly Changed[]): void {
    const adopted = new Map<string, object | undefined>();
    for (const { key, value, revision } of changes) {
      if (!isAgreed(key) || revision <= (this.#held.get(key)?.revision ?? 0)) continue;
      const parsed = value === null ? undefined : (JSON.parse(value) as object);
      this.#held.set(key, { value: parsed, revision });
      adopted.set(key, parsed);
    }
    if (adopted.size > 0) this.#options.apply(adopted, { whole: false });
  }

  #begin(): void {
    const { view, apply } = this.#options;
    if (view.value(KEYS.cluster) === undefined) return;
    for (const prefix of AGREED_PREFIXES)
      for (const { key, value, revision } of view.under(prefix))
        this.#held.set(key, { value: value as object, revision });
    this.#ready = true;
    apply(new Map([...this.#held].map(([key, { value }]) => [key, value])), { whole: true });
  }

  #follow(changes: readonly Changed[]): void {
    this.adopt(changes);
    // The watch tells in order: nothing older than this comes any more, so that deleted keys need not be remembered.
    const seen = changes.at(-1)?.revision ?? 0;
    for (const [key, { value, revision }] of this.#held)
      if (value === undefined && revision <= seen) this.#held.delete(key);
  }
}

function isAgreed(key: string): boolean {
  return AGREED_PREFIXES.some((prefix) => key.startsWith(prefix));
}
