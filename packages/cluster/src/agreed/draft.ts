/**
 * What one change does to the records that all hosts share: collected first, then made in one transaction, provided that
 * nothing it rests on has changed meanwhile. Pure.
 */
import type { Change, Condition } from "../contract.ts";
import type { AgreedCopy } from "./copy.ts";

export class Draft {
  readonly #copy: Pick<AgreedCopy, "get" | "revisionOf" | "under">;
  readonly #changes = new Map<string, object | undefined>();
  readonly #conditions = new Map<string, number>();

  constructor(copy: Pick<AgreedCopy, "get" | "revisionOf" | "under">) {
    this.#copy = copy;
  }

  /** The value as it will be. */
  get(key: string): object | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#copy.get(key);
  }

  /** All keys of a prefix as they will be, sorted. */
  under(prefix: string): { key: string; value: object }[] {
    const all = new Map(this.#copy.under(prefix).map(({ key, value }) => [key, value]));
    for (const [key, value] of this.#changes)
      if (!key.startsWith(prefix)) continue;
      else if (value === undefined) all.delete(key);
      else all.set(key, value);
    return [...all].map(([key, value]) => ({ key, value })).toSorted((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** The change holds only if this key stays what it is until then. */
  restOn(key: string): void {
    if (!this.#conditions.has(key)) this.#conditions.set(key, this.#copy.revisionOf(key));
  }

  put(key: string, value: object): void {
    this.restOn(key);
    this.#changes.set(key, value);
  }

  remove(key: string): void {
    this.restOn(key);
    this.#changes.set(key, undefined);
  }

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  get conditions(): Condition[] {
    return [...this.#conditions].map(([key, revision]) => ({ key, revision }));
  }

  get changes(): Change[] {
    return [...this.#changes].map(([key, value]) => ({
      key,
      value: value === undefined ? null : JSON.stringify(value),
    }));
  }
}
