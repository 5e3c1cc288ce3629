/** Brings this host's store in line with the records that all hosts share, and tells those who follow them. */
import { isDeepStrictEqual } from "node:util";
import { namedApps } from "@hibernaut/domain/scopes";
import type { TokenRecord } from "@hibernaut/store";
import { KEYS, nameOf } from "../keys.ts";
import type { Changes } from "./copy.ts";
import {
  type AgreedApp,
  type AgreedHostname,
  type AgreedRelease,
  type AgreedSecret,
  type AgreedToken,
  agreedRecords,
  agreedSecret,
  agreedToken,
  releaseOf,
  type SharedStore,
  storedSecret,
} from "./records.ts";

interface ProjectionOptions {
  store: SharedStore;
  host: string;
  /** Carries out a change of an app's secrets, and discards the snapshots that have the old ones in their memory. */
  changeSecrets(app: string, change: () => void): void;
  appsDeleted(): void;
  hostnamesChanged(): void;
  /** Is told of a record that cannot be adopted yet, such as the end of an app that still has a volume here. */
  onTrouble(message: string, fields: Record<string, unknown>): void;
}

/** Deletions first, those of apps last, because what belongs to an app goes with it; then apps, before what belongs to them. */
const ORDER = [
  [KEYS.hostnames, KEYS.tokens, KEYS.secrets, KEYS.releases, KEYS.apps],
  [KEYS.apps, KEYS.tokens, KEYS.hostnames, KEYS.secrets, KEYS.releases],
] as const;

/** What became of a record. `later`: it cannot be adopted yet. */
type Adopted = "changed" | "same" | "later";

export class Projection {
  readonly #options: ProjectionOptions;
  /** What could not be adopted yet. */
  #late = new Map<string, object | undefined>();
  /** The apps among it. What belongs to them is not that of the earlier app which is still here. */
  readonly #lateApps = new Set<string>();
  /** Tokens that this host has made and not told the others about. */
  readonly #unpublished = new Set<string>();

  constructor(options: ProjectionOptions) {
    this.#options = options;
  }

  /** The tokens that the directory does not have yet. */
  get unpublished(): string[] {
    return [...this.#unpublished];
  }

  keepToken(id: string): void {
    this.#unpublished.add(id);
  }

  /** Adopts changes. With `whole`, `changes` are all records there are, and all others go. */
  readonly apply = (changes: Changes, { whole }: { whole: boolean }): void => {
    const all = new Map(whole ? [...this.#gone(changes), ...changes] : [...this.#late, ...changes]);
    const late = new Map<string, object | undefined>();
    this.#lateApps.clear();
    let hostnames = false;
    let deleted = false;
    for (const [phase, prefixes] of ORDER.entries())
      for (const prefix of prefixes)
        for (const [key, value] of all) {
          if (!key.startsWith(prefix) || (value === undefined) !== (phase === 0)) continue;
          const done = this.#attempt(prefix, key, value);
          if (done === "later") late.set(key, value);
          if (done === "later" && prefix === KEYS.apps) this.#lateApps.add(nameOf(key));
          hostnames ||= done === "changed" && prefix === KEYS.hostnames;
          deleted ||= done === "changed" && prefix === KEYS.apps && value === undefined;
        }
    for (const key of late.keys())
      if (!this.#late.has(key)) this.#options.onTrouble("a record of the cluster cannot be adopted yet", { key });
    this.#late = late;
    if (deleted) this.#options.appsDeleted();
    if (hostnames && !deleted) this.#options.hostnamesChanged();
  };

  /** Tries again what could not be adopted. Call it now and then. */
  retry(): void {
    if (this.#late.size > 0) this.apply(new Map(), { whole: false });
  }

  /** What the store has and the directory has not. */
  #gone(all: Changes): [string, undefined][] {
    const { store, host } = this.#options;
    return [...agreedRecords(store, host).keys()]
      .filter((key) => !all.has(key) && !(key.startsWith(KEYS.tokens) && this.#unpublished.has(nameOf(key))))
      .map((key) => [key, undefined]);
  }

  /** One record that cannot be stored, for want of room on the disk, must not keep the others from being adopted. */
  #attempt(prefix: string, key: string, value: object | undefined): Adopted {
    try {
      return this.#adopt(prefix, key, value);
    } catch (error) {
      this.#options.onTrouble("a record of the cluster cannot be stored", { key, err: error });
      return "later";
    }
  }

  #adopt(prefix: string, key: string, value: object | undefined): Adopted {
    const { store } = this.#options;
    const name = nameOf(key);
    if (prefix === KEYS.apps) return this.#app(name, value as AgreedApp | undefined);
    if (prefix === KEYS.hostnames) return this.#hostname(name, value as AgreedHostname | undefined);
    if (prefix === KEYS.secrets) return this.#secrets(name, (value ?? []) as AgreedSecret[]);
    if (prefix === KEYS.releases) return this.#release(key, value as AgreedRelease | undefined);
    const present = store.tokens.get(name);
    if (value === undefined) return store.tokens.remove(name) ? "changed" : "same";
    this.#unpublished.delete(name);
    return this.#token(value as AgreedToken, present);
  }

  #token(token: AgreedToken, present: TokenRecord | undefined): Adopted {
    // At once, because it may be revoked; and again, because it loses the earlier app together with the late one's name.
    const again = namedApps(token).some((app) => this.#lateApps.has(app));
    if (present !== undefined && isSame(agreedToken(present), token)) return again ? "later" : "same";
    this.#options.store.tokens.put({ ...token, lastUsedAt: present?.lastUsedAt ?? null });
    return again ? "later" : "changed";
  }

  #app(name: string, app: AgreedApp | undefined): Adopted {
    const { apps } = this.#options.store;
    const present = apps.get(name);
    if (app === undefined) {
      if (present === undefined) return "same";
      return apps.delete(name) ? "changed" : "later";
    }
    // Another app of the same name, which was created after this host had last heard of the cluster.
    if (present !== undefined && present.createdAt !== app.createdAt && !apps.delete(name)) return "later";
    const { network, preview } = app;
    const its = { ...(network !== undefined && { network }), ...(preview !== undefined && { preview }) };
    apps.insert({ name, createdAt: app.createdAt, ...its });
    if (preview !== undefined && !isSame(apps.get(name)?.preview, preview)) apps.setPreview(name, preview);
    if (network !== undefined && !isSame(apps.get(name)?.network, network)) apps.setNetwork(name, network);
    if (!isSame(apps.get(name)?.quota ?? {}, app.quota ?? {})) apps.setQuota(name, app.quota ?? {});
    const shown = app.statusPage === true;
    if ((apps.get(name)?.statusPage === true) !== shown) apps.setStatusPage(name, shown);
    return "changed";
  }

  #hostname(name: string, hostname: AgreedHostname | undefined): Adopted {
    const { hostnames, apps } = this.#options.store;
    const owner = hostnames.list().find((each) => each.name === name)?.app;
    const isLate = hostname !== undefined && this.#lateApps.has(hostname.app);
    if (owner === hostname?.app) return isLate ? "later" : "same";
    if (owner !== undefined) hostnames.remove(name, owner);
    if (hostname === undefined) return "changed";
    if (isLate || apps.get(hostname.app) === undefined) return "later";
    return hostnames.insert(name, hostname.app) ? "changed" : "later";
  }

  #secrets(app: string, wanted: readonly AgreedSecret[]): Adopted {
    const { store, changeSecrets } = this.#options;
    if (store.apps.get(app) === undefined) return wanted.length === 0 ? "same" : "later";
    if (this.#lateApps.has(app) && wanted.length > 0) return "later";
    const present = store.secrets.list(app);
    const known = new Map(present.map((secret) => [secret.name, agreedSecret(secret)]));
    const names = new Set(wanted.map(({ name }) => name));
    const changed = wanted.filter((secret) => !isSame(known.get(secret.name), secret));
    const gone = present.filter(({ name }) => !names.has(name));
    if (changed.length === 0 && gone.length === 0) return "same";
    changeSecrets(app, () => {
      store.secrets.set(changed.map((secret) => storedSecret(app, secret)));
      for (const { name } of gone) store.secrets.remove(app, name);
    });
    return "changed";
  }

  #release(key: string, release: AgreedRelease | undefined): Adopted {
    const { store } = this.#options;
    const { app, version } = releaseOf(key);
    if (release === undefined) return store.releases.remove(app, version) ? "changed" : "same";
    if (store.apps.get(app) === undefined || this.#lateApps.has(app)) return "later";
    const { host: _from, app: _of, ...record } = release;
    return store.releases.put(app, record) ? "changed" : "same";
  }
}

/** Whether two values are the same as JSON, where what is undefined is absent. */
function isSame(one: unknown, other: unknown): boolean {
  const asJson = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
  return isDeepStrictEqual(asJson(one), asJson(other));
}
