/** The names under which the API and its dashboard are opened. Browsers keep the cookies of sessions by name, so no app gets one. */
import { hostname } from "node:os";
import type { Settings } from "@hibernaut/settings";
import type { ReservedNameStore } from "@hibernaut/store";

/** More names than anyone opens a dashboard under. The one that was not used for longest is forgotten first. */
const MOST_REMEMBERED = 100;

/** Knows which names are reserved: by the settings, and because someone signed in there. */
export class ReservedNames {
  readonly #store: ReservedNameStore;
  readonly #fixed: ReadonlySet<string>;
  #all: ReadonlySet<string>;

  constructor(store: ReservedNameStore, fixed: readonly string[]) {
    this.#store = store;
    this.#fixed = new Set(fixed);
    this.#all = this.#read();
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  all(): string[] {
    return [...this.#all];
  }

  /** Reserves a name from now on. Returns whether it is new. */
  remember(name: string): boolean {
    const known = this.has(name);
    this.#store.note(name, Date.now(), MOST_REMEMBERED);
    this.#all = this.#read();
    return !known;
  }

  #read(): ReadonlySet<string> {
    return new Set([...this.#fixed, ...this.#store.list()]);
  }
}

/** Returns the names that the settings reserve. Where the API listens beyond this host, the host's own name leads to it. */
export function reservedBySettings(
  { reservedHostnames, apiListen }: Pick<Settings, "reservedHostnames" | "apiListen">,
  ownName = hostname(),
): string[] {
  const onlyHere = /^(localhost|127\..*|::1)$/.test(apiListen.host);
  const names = ["localhost", apiListen.host, ...reservedHostnames, ...(onlyHere ? [] : [ownName])];
  return names.map((name) => name.toLowerCase());
}
