/** The store as a draft has it: the rules of apps, tokens and so on run on it as they do on the real one, and store nothing. */
import type { AppRecord, ReleaseRecord } from "@hibernaut/domain/machine";
import { isFullAccess, namedApps } from "@hibernaut/domain/scopes";
import type { AppStore, HostnameStore, ReleaseStore, SecretStore, TokenRecord, TokenStore } from "@hibernaut/store";
import { beingDeleted } from "../app-deletion.ts";
import { KEYS, nameOf } from "../keys.ts";
import type { Draft } from "./draft.ts";
import {
  type AgreedApp,
  type AgreedHostname,
  type AgreedRelease,
  type AgreedSecret,
  type AgreedToken,
  agreedSecret,
  agreedToken,
  releaseKey,
  type SharedStore,
  storedSecret,
} from "./records.ts";

/** As many releases as the store keeps of an app. */
const KEPT_RELEASES = 100;

/** Returns the store of a draft. `own` is this host's store, for what is not shared; `host` is this host's name. */
export function draftStore(draft: Draft, { own, host }: { own: SharedStore; host: string }): SharedStore {
  const requireApp = (name: string): boolean => {
    const app = draft.get(KEYS.apps + name) as AgreedApp | undefined;
    draft.restOn(KEYS.apps + name);
    if (app?.deleting === true) throw beingDeleted(name);
    return app !== undefined;
  };
  const parts = { draft, requireApp };
  return {
    apps: draftApps(parts, own.apps),
    hostnames: draftHostnames(parts),
    secrets: draftSecrets(parts, own.secrets),
    releases: draftReleases(parts, host),
    tokens: draftTokens(parts, own.tokens),
  };
}

interface Parts {
  draft: Draft;
  /** Whether the app exists. The draft rests on it from then on. Throws `aborted` while it is being deleted. */
  requireApp(name: string): boolean;
}

function draftApps({ draft, requireApp }: Parts, own: AppStore): AppStore {
  const change = (name: string, next: (app: AgreedApp) => AgreedApp): void => {
    const app = draft.get(KEYS.apps + name) as AgreedApp | undefined;
    if (app !== undefined && requireApp(name)) draft.put(KEYS.apps + name, next(app));
  };
  const list = () => draft.under(KEYS.apps).map(({ value }) => value as AppRecord);
  /**
   * Names and addresses in networks were judged by those of all apps. Of two at once, each of which writes the first of these as it
   * is, one is refused and worked out again.
   */
  const alone = (): void => {
    const all = draft.under(KEYS.apps).map(({ value }) => value as AgreedApp);
    const first = all.find(({ network, deleting }) => network !== undefined && deleting !== true);
    if (first !== undefined) draft.put(KEYS.apps + first.name, first);
  };
  return {
    insert(app) {
      if (draft.get(KEYS.apps + app.name) !== undefined) return false;
      // Its production must not be deleted meanwhile, nor get another preview that nobody counted: it is written as it is.
      if (app.preview !== undefined) change(app.preview.of, (production) => production);
      if (app.network !== undefined) alone();
      draft.put(KEYS.apps + app.name, app);
      return true;
    },
    get: (name) => draft.get(KEYS.apps + name) as AppRecord | undefined,
    list,
    inNetwork: (network) => list().filter((app) => app.network?.name === network),
    firstEvent: (name) => own.firstEvent(name),
    setQuota: (name, quota) => change(name, ({ quota: _old, ...app }) => ({ ...app, quota })),
    setStatusPage: (name, on) =>
      change(name, ({ statusPage: _old, ...app }) => (on ? { ...app, statusPage: true } : app)),
    setPreview: (name, preview) => change(name, (app) => ({ ...app, preview })),
    setNetwork(name, network) {
      alone();
      change(name, (app) => ({ ...app, network }));
    },
    delete: () => notHere("delete an app"),
  };
}

function draftHostnames({ draft, requireApp }: Parts): HostnameStore {
  const ownerOf = (name: string) => (draft.get(KEYS.hostnames + name) as AgreedHostname | undefined)?.app;
  return {
    list: () =>
      draft.under(KEYS.hostnames).map(({ key, value }) => ({ name: nameOf(key), app: (value as AgreedHostname).app })),
    insert(name, app) {
      if (ownerOf(name) !== undefined || !requireApp(app)) return false;
      draft.put(KEYS.hostnames + name, { app } satisfies AgreedHostname);
      return true;
    },
    remove(name, app) {
      if (ownerOf(name) !== app) return false;
      draft.remove(KEYS.hostnames + name);
      return true;
    },
  };
}

function draftSecrets({ draft, requireApp }: Parts, own: SecretStore): SecretStore {
  const of = (app: string) => (draft.get(KEYS.secrets + app) ?? []) as AgreedSecret[];
  const replace = (app: string, secrets: readonly AgreedSecret[]): void => {
    if (!requireApp(app)) return;
    const sorted = secrets.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    if (sorted.length === 0) draft.remove(KEYS.secrets + app);
    else draft.put(KEYS.secrets + app, sorted);
  };
  return {
    list: (app) => of(app).map((secret) => storedSecret(app, secret)),
    any: () => own.any(),
    set(secrets) {
      for (const app of new Set(secrets.map((secret) => secret.app))) {
        const added = secrets.filter((secret) => secret.app === app).map(agreedSecret);
        const names = new Set(added.map(({ name }) => name));
        replace(app, [...of(app).filter(({ name }) => !names.has(name)), ...added]);
      }
    },
    remove(app, name) {
      const left = of(app).filter((secret) => secret.name !== name);
      if (left.length === of(app).length) return false;
      replace(app, left);
      return true;
    },
  };
}

function draftReleases({ draft, requireApp }: Parts, host: string): ReleaseStore {
  const of = (app: string) => draft.under(`${KEYS.releases}${app}/`).map(({ value }) => value as AgreedRelease);
  const recordOf = ({ app: _of, host: _from, ...record }: AgreedRelease): ReleaseRecord => record;
  return {
    add(app, release) {
      requireApp(app);
      const version = (of(app).at(-1)?.version ?? 0) + 1;
      const added = { ...release, version };
      draft.put(releaseKey(app, version), { ...added, app, host } satisfies AgreedRelease);
      for (const old of of(app)) if (old.version <= version - KEPT_RELEASES) draft.remove(releaseKey(app, old.version));
      return added;
    },
    list: (app, limit) => of(app).toReversed().slice(0, limit).map(recordOf),
    update(app, version, status, description) {
      const release = draft.get(releaseKey(app, version)) as AgreedRelease | undefined;
      if (release === undefined) return false;
      draft.put(releaseKey(app, version), { ...release, status, description });
      return true;
    },
    put: () => notHere("replace a release"),
    remove: () => notHere("remove a release"),
  };
}

function draftTokens({ draft, requireApp }: Parts, own: TokenStore): TokenStore {
  const stored = (token: AgreedToken): TokenRecord => ({ ...token, lastUsedAt: own.get(token.id)?.lastUsedAt ?? null });
  const get = (id: string) => draft.get(KEYS.tokens + id) as AgreedToken | undefined;
  const all = () => draft.under(KEYS.tokens).map(({ value }) => value as AgreedToken);
  const put = (token: AgreedToken) => draft.put(KEYS.tokens + token.id, token);
  const insert = (token: TokenRecord): boolean => {
    if (!namedApps(token).every(requireApp)) return false;
    put(agreedToken(token));
    return true;
  };
  return {
    insert,
    replace(id, token, expiresAt) {
      const old = get(id);
      if (old === undefined || old.revokedAt !== null || !insert(token)) return false;
      put({ ...old, expiresAt, replacedBy: token.id });
      return true;
    },
    used: (times) => own.used(times),
    list: () => all().toSorted(byAge).map(stored),
    findByHash: (hash) => own.findByHash(hash),
    get: (id) => {
      const token = get(id);
      return token && stored(token);
    },
    revoke(id, at) {
      const token = get(id);
      if (token === undefined || token.revokedAt !== null) return false;
      put({ ...token, revokedAt: at });
      // Another host must not revoke the last other token that may do everything at the same moment.
      const other = all().find((each) => each.id !== id && each.revokedAt === null && isFullAccess(each));
      if (other !== undefined) draft.restOn(KEYS.tokens + other.id);
      return true;
    },
    put: () => notHere("replace a token"),
    remove: () => notHere("remove a token"),
  };
}

function byAge(a: AgreedToken, b: AgreedToken): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

function notHere(what: string): never {
  throw new Error(`A draft cannot ${what}.`);
}
