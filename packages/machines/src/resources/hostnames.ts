/** Hostnames: names of their own at which apps answer, in addition to `<app>.<suffix>`. */
import { HibernautError } from "@hibernaut/domain/errors";
import { isAddress } from "@hibernaut/lib/address-names";
import type { Store } from "@hibernaut/store";
import type { MachineDependencies } from "../dependencies.ts";
import { appUnder, checkHostname, nameIn } from "../hostnames.ts";
import { requireApp } from "../require-app.ts";
import type { ReservedNames } from "../reserved-names.ts";
import type { Apps } from "./apps.ts";

interface HostnamesDependencies extends Pick<MachineDependencies, "settings" | "quotas"> {
  store: Pick<Store, "apps" | "hostnames">;
}

/** Adds, lists and removes hostnames of apps. */
export class Hostnames {
  readonly #deps: HostnamesDependencies;
  readonly #reserved: ReservedNames;
  readonly #listeners = new Set<() => void>();

  constructor(deps: HostnamesDependencies, apps: Pick<Apps, "subscribe">, reserved: ReservedNames) {
    this.#deps = deps;
    this.#reserved = reserved;
    apps.subscribe(() => this.changed());
  }

  /** Returns the same rules over other records of hostnames and apps. */
  over(store: Pick<Store, "apps" | "hostnames">): Hostnames {
    return new Hostnames({ ...this.#deps, store }, { subscribe: () => () => false }, this.#reserved);
  }

  /**
   * Returns the hostnames of all apps at which they answer, each with its app: not those that are reserved by now, nor
   * addresses, which earlier releases accepted.
   */
  owners(): Record<string, string> {
    const answering = this.#deps.store.hostnames.list().filter(({ name }) => !this.isReserved(name));
    return Object.fromEntries(answering.map(({ name, app }) => [name, app]));
  }

  /** Returns the names at which no app answers, because the API is opened under them. */
  reserved(): string[] {
    return this.#reserved.all();
  }

  /** Whether no app answers at the name, even one that has it. */
  isReserved(name: string): boolean {
    return this.#reserved.has(name) || isAddress(name);
  }

  /** Returns the hostnames of an app. */
  list(app: string): string[] {
    requireApp(this.#deps.store.apps, app);
    const all = this.#deps.store.hostnames.list();
    return all.filter((hostname) => hostname.app === app).map(({ name }) => name);
  }

  /**
   * Returns the hostname as stored, in lowercase. Adding a hostname that the app already has changes nothing. Throws
   * `invalid_argument` when it is not valid, and `already_exists` when it belongs to another app.
   */
  add(app: string, name: string): string {
    const { hostname, owner } = this.claim(app, name);
    if (owner === app) return hostname;
    this.#deps.quotas?.requireHostname(app);
    this.#deps.store.hostnames.insert(hostname, app);
    this.changed();
    return hostname;
  }

  /** Returns what {@link add} would store, and whether the app has it already. Throws what that would throw. */
  claim(app: string, name: string): { hostname: string; owner: string | undefined } {
    requireApp(this.#deps.store.apps, app);
    const rules = { suffixes: this.#deps.settings.proxySuffixes, isReserved: (each: string) => this.isReserved(each) };
    const hostname = checkHostname(name, rules);
    const owner = this.#ownerOf(hostname);
    if (owner === undefined || owner === app) return { hostname, owner };
    const message = `${hostname} already belongs to app ${owner}. Remove it there first.`;
    throw new HibernautError("already_exists", message, { hostname, app_name: owner });
  }

  #ownerOf(hostname: string): string | undefined {
    return this.#deps.store.hostnames.list().find(({ name }) => name === hostname)?.app;
  }

  /**
   * Someone signs in at the API under a name, as `Host` has it, and gets a cookie that browsers send to all ports of that
   * name. If the token may add hostnames to every app, no app gets the name from now on. Throws `failed_precondition` when
   * an app has it.
   */
  signIn(host: string | undefined, mayReserve: boolean): void {
    const name = nameIn(host);
    if (name === undefined || this.#reserved.has(name)) return;
    const { store, settings } = this.#deps;
    const under = appUnder(settings.proxySuffixes, name);
    if (this.#ownerOf(name) !== undefined || (under !== undefined && store.apps.get(under) !== undefined)) {
      const message = `${name} belongs to an app, to which browsers would send the cookie of your session. Open the dashboard under another name or address of the host, or reserve this one: HIBERNAUT_RESERVED_HOSTNAMES.`;
      throw new HibernautError("failed_precondition", message, { hostname: name });
    }
    if (mayReserve && this.#reserved.remember(name)) this.changed();
  }

  /** Throws `not_found` when the app has no such hostname. */
  remove(app: string, name: string): void {
    requireApp(this.#deps.store.apps, app);
    if (!this.#deps.store.hostnames.remove(name.toLowerCase(), app))
      throw new HibernautError("not_found", `App ${app} has no hostname ${name}.`, { hostname: name });
    this.changed();
  }

  /** Calls `listener` when hostnames were added or removed. Returns a function that ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells the listeners that hostnames were added or removed. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
