/** Apps: names that own machines, hostnames, secrets, volumes and releases. */
import type { AppNetwork } from "@hibernaut/domain/app-network";
import { type AppStatus, appStatusOf, type JudgedMachine } from "@hibernaut/domain/app-status";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
import type { AppStore, Store } from "@hibernaut/store";
import type { AppDeletions } from "../app-deletions.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";
import { DESTROY_TIMEOUT_MS } from "../waiting.ts";
import { changedPlace, type NetworkPlace, newPlace, requireWithoutPreviews } from "./app-place.ts";
import type { Machines } from "./machines.ts";
import type { Templates } from "./templates.ts";

/** How often a deletion empties an app: what was under way when it began, such as a volume, may be there afterwards. */
const MOST_ROUNDS = 3;

interface AppsDependencies extends Pick<MachineDependencies, "volumes"> {
  store: Pick<Store, "apps" | "machines" | "templates">;
  templates: Pick<Templates, "deleteAll">;
  deletions: Pick<AppDeletions, "during">;
}

/** Creates, lists and deletes apps. */
export class Apps {
  readonly #deps: AppsDependencies;
  readonly #machines: Machines;
  readonly #listeners = new Set<() => void>();

  constructor(deps: AppsDependencies, machines: Machines) {
    this.#deps = deps;
    this.#machines = machines;
  }

  /** Returns the same rules over other records of apps. */
  over(apps: AppStore): Apps {
    const { store, ...others } = this.#deps;
    return new Apps({ ...others, store: { ...store, apps } }, this.#machines);
  }

  /**
   * Throws `invalid_argument` when the name, the network or an alias is not valid, and `already_exists` when the name is
   * taken, or in the network an alias.
   */
  create(name: string, place: NetworkPlace = {}): AppRecord {
    if (!isValidName(name))
      throw new HibernautError("invalid_argument", `An app's name ${NAME_RULE}.`, { field: "app_name", value: name });
    const network = newPlace(name, place, this.#deps.store.apps);
    if (network !== undefined) requireWithoutPreviews(network.name, this.#deps.store.apps);
    const app = { name, createdAt: new Date().toISOString(), ...(network && { network }) };
    if (this.#deps.store.apps.insert(app)) return app;
    throw new HibernautError("already_exists", `App ${name} already exists. Choose another name.`, { app_name: name });
  }

  /** Returns all apps, by name. */
  list(): AppRecord[] {
    return this.#deps.store.apps.list();
  }

  has(name: string): boolean {
    return this.#deps.store.apps.get(name) !== undefined;
  }

  /** Returns the network that an app shares. Undefined if it shares none, or does not exist. */
  networkOf(name: string): AppNetwork | undefined {
    return this.#deps.store.apps.get(name)?.network;
  }

  /** Throws `not_found` when there is no such app. */
  get(name: string): AppRecord {
    return requireApp(this.#deps.store.apps, name);
  }

  /**
   * Returns with which event each of these apps begins, by name: events before it are of an earlier app of that name.
   * Without those that do not exist.
   */
  firstEvents(names: readonly string[]): Map<string, number> {
    const { apps } = this.#deps.store;
    const found = names.map((name) => [name, apps.firstEvent(name)] as const);
    return new Map(found.flatMap(([name, first]) => (first === undefined ? [] : [[name, first] as const])));
  }

  /** Lets anyone see how the app is, or nobody. Throws `not_found` when there is no such app. */
  setStatusPage(name: string, on: boolean): AppRecord {
    this.get(name);
    this.#deps.store.apps.setStatusPage(name, on);
    return this.get(name);
  }

  /**
   * Changes what the app is called in its network, and which others it wakes. Throws `failed_precondition` when it is in none,
   * `already_exists` when another app there is called so, and `invalid_argument` for names that are not.
   */
  setPlace(name: string, place: Omit<NetworkPlace, "network">): AppRecord {
    const { network } = this.get(name);
    if (network === undefined)
      throw new HibernautError(
        "failed_precondition",
        `App ${name} is in no network, so nobody would find it by an alias. An app gets its network when it is created.`,
        { app_name: name },
      );
    const { apps } = this.#deps.store;
    apps.setNetwork(name, changedPlace(name, network, place, apps));
    return this.get(name);
  }

  /**
   * Returns how an app is, if its owner shows that to everybody. Undefined otherwise, and for an app that does not exist.
   * `elsewhere` are its machines on other hosts.
   */
  publicStatus(name: string, elsewhere: (name: string) => JudgedMachine[] = () => []): AppStatus | undefined {
    if (this.#deps.store.apps.get(name)?.statusPage !== true) return undefined;
    return appStatusOf([...this.#machines.list(name), ...elsewhere(name)]);
  }

  /**
   * Deletes an app, to which nothing is added meanwhile. Rejects with `failed_precondition` while it has machines or volumes, unless `force` is set, which
   * destroys them first, with its templates.
   */
  async delete(name: string, { force = false } = {}): Promise<void> {
    const { createdAt } = this.get(name);
    await this.#deps.deletions.during(name, async () => {
      for (let round = 1; round <= MOST_ROUNDS; round += 1) {
        this.#requireSame(name, createdAt);
        await this.empty(name, { force });
        if (this.#deps.store.apps.delete(name)) return;
      }
      throw new HibernautError(
        "aborted",
        `App ${name} got a new machine, volume or template while it was being deleted. Try again.`,
      );
    });
    this.deleted();
  }

  #requireSame(name: string, createdAt: string): void {
    if (this.get(name).createdAt === createdAt) return;
    throw new HibernautError("aborted", `App ${name} was deleted by someone else. Another one of that name stays.`);
  }

  /**
   * Destroys the app's machines and volumes on this host. Without `force`, rejects with `failed_precondition` when there
   * are any.
   */
  async empty(name: string, { force }: { force: boolean }): Promise<void> {
    const { createdAt } = this.get(name);
    const stillSame = () => this.#requireSame(name, createdAt);
    if (!force) this.#requireEmpty(name);
    // First: with them go the machines of their pools.
    await this.#deps.templates.deleteAll(name);
    stillSame();
    const ids = this.#machines.list(name).map(({ record }) => record.id);
    for (const id of ids) this.#machines.destroy(name, id, { force: true });
    await Promise.all(ids.map((id) => this.#machines.wait(name, id, ["destroyed"], { timeoutMs: DESTROY_TIMEOUT_MS })));
    stillSame();
    await this.#deps.volumes.destroyAll(name);
    stillSame();
  }

  /** Tells the listeners that apps were deleted. */
  deleted(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` after an app was deleted. Returns a function that ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #requireEmpty(name: string): void {
    const volumes = this.#deps.volumes.list(name).map(({ id }) => id);
    if (volumes.length > 0)
      throw new HibernautError(
        "failed_precondition",
        `App ${name} still has ${volumes.length} volume(s) with data. Destroy them first, or add --force (over HTTP \`?force=true\`), which destroys them with their snapshots.`,
        { volumes },
      );
    const templates = this.#deps.store.templates.list(name).map(({ id }) => id);
    if (templates.length > 0)
      throw new HibernautError(
        "failed_precondition",
        `App ${name} still has ${templates.length} template(s). Delete them first, or add --force (over HTTP \`?force=true\`), which deletes them.`,
        { templates },
      );
    const machines = this.#deps.store.machines.list(name).map(({ id }) => id);
    if (machines.length > 0)
      throw new HibernautError(
        "failed_precondition",
        `App ${name} still has ${machines.length} machine(s). Destroy them first, or add --force (over HTTP \`?force=true\`).`,
        { machines },
      );
  }
}
