/** Hostnames: names of their own at which apps answer, in addition to `<app>.<suffix>`. */
import { HibernautError } from "../../domain/errors.ts";
import type { Store } from "../../store/contract.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { checkHostname } from "../hostnames.ts";
import { requireApp } from "../require-app.ts";
import type { Apps } from "./apps.ts";

interface HostnamesDependencies extends Pick<MachineDependencies, "settings"> {
  store: Pick<Store, "apps" | "hostnames">;
}

/** Adds, lists and removes hostnames of apps. */
export class Hostnames {
  readonly #deps: HostnamesDependencies;
  readonly #listeners = new Set<() => void>();

  constructor(deps: HostnamesDependencies, apps: Pick<Apps, "subscribe">) {
    this.#deps = deps;
    apps.subscribe(() => this.changed());
  }

  /** Returns the same rules over other records of hostnames and apps. */
  over(store: Pick<Store, "apps" | "hostnames">): Hostnames {
    return new Hostnames({ ...this.#deps, store }, { subscribe: () => () => false });
  }

  /** Returns the hostnames of all apps, each with its app. */
  owners(): Record<string, string> {
    return Object.fromEntries(this.#deps.store.hostnames.list().map(({ name, app }) => [name, app]));
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
    requireApp(this.#deps.store.apps, app);
    const hostname = checkHostname(name, this.#deps.settings.proxySuffixes);
    const owner = this.owners()[hostname];
    if (owner === app) return hostname;
    if (!this.#deps.store.hostnames.insert(hostname, app)) {
      const message = `${hostname} already belongs to app ${owner}. Remove it there first.`;
      throw new HibernautError("already_exists", message, { hostname, app_name: owner });
    }
    this.changed();
    return hostname;
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
