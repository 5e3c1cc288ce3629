/** The keys of a cluster's directory in memory, with what is looked up often at hand. Pure data, without effects. */
import type { Owned } from "./cluster.ts";
import type { Changed, Entry } from "./contract.ts";
import { KEYS, nameOf, type OwnerRecord, ROOT } from "./keys.ts";

/** A key's value, parsed. */
export interface Held {
  value: unknown;
  revision: number;
}

const NONE: ReadonlyMap<string, Owned> = new Map();

export class Entries {
  /** By the first part of the key after the root, then by key. */
  readonly #kinds = new Map<string, Map<string, Held>>();
  readonly #owners = new Map<string, Owned>();
  readonly #ownersByApp = new Map<string, Map<string, Owned>>();

  /** Adopts a change. Throws a SyntaxError, and adopts nothing, when the value is not JSON. */
  adopt({ key, value, revision }: Changed): void {
    const parsed: unknown = value === null ? undefined : JSON.parse(value);
    const kind = kindOf(key);
    const keys = this.#kinds.get(kind) ?? new Map<string, Held>();
    this.#kinds.set(kind, keys);
    if (value === null) keys.delete(key);
    else keys.set(key, { value: parsed, revision });
    if (key.startsWith(KEYS.machines)) this.#adoptOwner(nameOf(key), parsed as OwnerRecord | undefined, revision);
  }

  /** What differs between this and all that there is at a revision. */
  difference(all: readonly Entry[], revision: number): Changed[] {
    const present = new Set(all.map(({ key }) => key));
    const gone = [...this.#kinds.values()].flatMap((keys) => [...keys.keys()].filter((key) => !present.has(key)));
    const changed = all.filter((entry) => this.get(entry.key)?.revision !== entry.revision);
    return [...gone.map((key) => ({ key, value: null, revision })), ...changed];
  }

  get(key: string): Held | undefined {
    return this.#kinds.get(kindOf(key))?.get(key);
  }

  /** All keys of a prefix, sorted. */
  under(prefix: string): { key: string; value: unknown; revision: number }[] {
    const keys = prefix === ROOT ? [...this.#kinds.values()].flatMap((each) => [...each]) : [...this.#of(prefix)];
    return keys
      .filter(([key]) => key.startsWith(prefix))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, held]) => ({ key, ...held }));
  }

  owner(machineId: string): Owned | undefined {
    return this.#owners.get(machineId);
  }

  /** The machines of an app, or all. */
  owners(app?: string): ReadonlyMap<string, Owned> {
    return app === undefined ? this.#owners : (this.#ownersByApp.get(app) ?? NONE);
  }

  #of(prefix: string): ReadonlyMap<string, Held> {
    return this.#kinds.get(kindOf(prefix)) ?? new Map<string, Held>();
  }

  #adoptOwner(id: string, record: OwnerRecord | undefined, revision: number): void {
    const before = this.#owners.get(id);
    if (before !== undefined) {
      const ofApp = this.#ownersByApp.get(before.app);
      ofApp?.delete(id);
      if (ofApp?.size === 0) this.#ownersByApp.delete(before.app);
      this.#owners.delete(id);
    }
    if (record === undefined) return;
    const owned = { ...record, id, revision };
    this.#owners.set(id, owned);
    const ofApp = this.#ownersByApp.get(record.app) ?? new Map<string, Owned>();
    this.#ownersByApp.set(record.app, ofApp.set(id, owned));
  }
}

/** `machines` for `/hib/machines/1`. */
function kindOf(key: string): string {
  const end = key.indexOf("/", ROOT.length);
  return end === -1 ? key.slice(ROOT.length) : key.slice(ROOT.length, end);
}
