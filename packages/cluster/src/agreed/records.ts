/** The records that all hosts of a cluster share, as the directory holds them. Pure. */
import type { AppRecord, ReleaseRecord } from "@hibernaut/domain/machine";
import type { SecretRecord, Store, TokenRecord } from "@hibernaut/store";
import type { Deletable } from "../app-deletion.ts";
import { KEYS, nameOf } from "../keys.ts";

/** The parts of the store that all hosts share. */
export type SharedStore = Pick<Store, "apps" | "hostnames" | "tokens" | "secrets" | "releases">;

/** An app. While it is being deleted, nothing can be added to it. */
export type AgreedApp = AppRecord & Deletable;

export interface AgreedHostname {
  app: string;
}

/** A token. Each host knows for itself when it was last used. */
export type AgreedToken = Omit<TokenRecord, "lastUsedAt">;

/** A secret; bytes are base64. */
export interface AgreedSecret extends Omit<SecretRecord, "app" | "ciphertext" | "nonce"> {
  ciphertext: string;
  nonce: string;
}

/** A release. `host` is the one that its client talks to. */
export interface AgreedRelease extends ReleaseRecord {
  app: string;
  host: string;
}

export const AGREED_PREFIXES = [KEYS.apps, KEYS.hostnames, KEYS.tokens, KEYS.secrets, KEYS.releases] as const;

/** How many digits a release's version has in its key, so that keys sort by version. */
const VERSION_DIGITS = 8;
/** More releases than the store keeps of an app. */
const ALL_RELEASES = 1000;

export function releaseKey(app: string, version: number): string {
  return `${KEYS.releases}${app}/${String(version).padStart(VERSION_DIGITS, "0")}`;
}

export function releaseOf(key: string): { app: string; version: number } {
  const [app = ""] = key.slice(KEYS.releases.length).split("/", 1);
  return { app, version: Number(nameOf(key)) };
}

/** Returns the token without what each host knows for itself, such as which previews there are, its apps sorted. */
export function agreedToken({ lastUsedAt: _own, previewsOf, ...token }: TokenRecord): AgreedToken {
  if (previewsOf !== undefined) return { ...token, apps: [], previewsOf: previewsOf.toSorted() };
  return { ...token, apps: token.apps === null ? null : token.apps.toSorted() };
}

/** Returns a secret as the directory holds it. */
export function agreedSecret({ app: _of, ciphertext, nonce, ...rest }: SecretRecord): AgreedSecret {
  return { ...rest, ciphertext: base64(ciphertext), nonce: base64(nonce) };
}

/** Returns a secret as the store holds it. */
export function storedSecret(app: string, { ciphertext, nonce, ...rest }: AgreedSecret): SecretRecord {
  return { ...rest, app, ciphertext: Buffer.from(ciphertext, "base64"), nonce: Buffer.from(nonce, "base64") };
}

/**
 * Returns everything of a store that all hosts share, by key: what `hibernaut cluster init` puts into the directory.
 * `host` is this host's name.
 */
export function agreedRecords(store: SharedStore, host: string): Map<string, object> {
  const records = new Map<string, object>();
  for (const app of store.apps.list()) {
    records.set(KEYS.apps + app.name, app);
    const secrets = store.secrets.list(app.name);
    if (secrets.length > 0) records.set(KEYS.secrets + app.name, secrets.map(agreedSecret));
    for (const release of store.releases.list(app.name, ALL_RELEASES))
      records.set(releaseKey(app.name, release.version), { ...release, app: app.name, host } satisfies AgreedRelease);
  }
  for (const { name, app } of store.hostnames.list()) records.set(KEYS.hostnames + name, { app });
  for (const token of store.tokens.list()) records.set(KEYS.tokens + token.id, agreedToken(token));
  return records;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
