/** Tokens: who may use the API. Only their SHA-256 is stored; 256 random bits need no slow hash. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { type Grant, isFullAccess, namedApps } from "@hibernaut/domain/scopes";
import { wiping } from "@hibernaut/lib/wipe";
import type { TokenRecord, TokenStore } from "@hibernaut/store";

/** Lets people and secret scanners see what a string is. */
const TOKEN_PREFIX = "hib_";

/** The keys that E2B's clients accept are this and hex digits. */
const E2B_PREFIX = "e2b_";

/** A token just made: the only moment at which it is readable. */
export interface CreatedToken {
  record: TokenRecord;
  token: string;
}

/** A token made in the place of another, and until when that one stays valid (RFC 3339). */
interface RotatedToken extends CreatedToken {
  old: { id: string; validUntil: string };
}

/** What a new token may do, and for how long. */
interface NewTokenOptions extends Partial<Grant> {
  /** Milliseconds from now; absent or null for no end. */
  lifeMs?: number | null;
  /** Whether E2B's clients have to accept it as their key. Default: false. */
  e2b?: boolean;
}

/** How a token is rotated. */
interface RotateOptions {
  /** How long the old token stays valid, in milliseconds. */
  overlapMs: number;
  /** How long the new one is valid, in milliseconds. Default: as long as the old one was when it was made. */
  lifeMs?: number | undefined;
}

/** Makes and stores a token. By default, it may do everything. Throws `not_found` if one of its apps does not exist. */
export function createToken(store: TokenStore, name: string, options: NewTokenOptions = {}): CreatedToken {
  const made = newToken(name, { scopes: ["admin"], apps: null, lifeMs: null, ...options });
  if (store.insert(made.record)) return made;
  throw unknownApp(namedApps(made.record));
}

/** The record of a token that is valid now; undefined for any other string. */
export function verifyToken(store: TokenStore, token: string, now = Date.now()): TokenRecord | undefined {
  const record = findToken(store, token);
  return record !== undefined && isLive(record, now) ? record : undefined;
}

/** The record of a token, also of one that has ended; undefined for any other string. */
export function findToken(store: TokenStore, token: string): TokenRecord | undefined {
  const hash = hashOf(token);
  const record = store.findByHash(hash);
  // The index found it by its hash already; this holds for any store, however it compares.
  if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash))) return undefined;
  return record;
}

/** Whether the token is valid at a moment, in milliseconds since 1970. */
export function isLive({ revokedAt, expiresAt }: TokenRecord, now = Date.now()): boolean {
  return revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > now);
}

/** Ends a token. The last one that may do everything stays, because nobody could make another. */
export function revokeToken(store: TokenStore, id: string): void {
  const token = requireLive(store, id);
  const others = store.list().filter((other) => other.id !== id && isLive(other) && isFullAccess(other));
  if (isFullAccess(token) && others.length === 0) {
    const message = `Token ${id} is the only one left that may do everything. Make another with \`hibernaut tokens create\` before you revoke it.`;
    throw new HibernautError("failed_precondition", message, { token_id: id });
  }
  store.revoke(id, new Date().toISOString());
}

/**
 * Makes a token with the same name and rights in the place of another, which stays valid for a while. Throws `not_found`,
 * or `failed_precondition` for a token that has been rotated already.
 */
export function rotateToken(store: TokenStore, id: string, { overlapMs, lifeMs }: RotateOptions): RotatedToken {
  const old = requireLive(store, id);
  if (old.replacedBy !== null) {
    const message = `Token ${id} was rotated already: ${old.replacedBy} is in its place. Rotate that one.`;
    throw new HibernautError("failed_precondition", message, { token_id: id, replaced_by: old.replacedBy });
  }
  const made = newToken(old.name, {
    scopes: old.scopes,
    apps: old.apps,
    ...(old.previewsOf && { previewsOf: old.previewsOf }),
    lifeMs: lifeMs ?? lifeOf(old),
    e2b: old.e2b === true,
  });
  const end = Math.min(Date.now() + overlapMs, old.expiresAt === null ? Infinity : Date.parse(old.expiresAt));
  const validUntil = new Date(end).toISOString();
  if (store.replace(id, made.record, validUntil)) return { ...made, old: { id, validUntil } };
  throw new HibernautError("aborted", `Token ${id} or one of its apps is gone by now. See \`hibernaut tokens list\`.`);
}

function newToken(
  name: string,
  { scopes, apps, previewsOf, lifeMs, e2b = false }: Grant & { lifeMs: number | null; e2b?: boolean },
): CreatedToken {
  const token = wiping(randomBytes(32), (bytes) =>
    e2b ? E2B_PREFIX + bytes.toString("hex") : TOKEN_PREFIX + bytes.toString("base64url"),
  );
  const now = Date.now();
  const record: TokenRecord = {
    id: randomBytes(6).toString("hex"),
    name,
    hash: hashOf(token),
    scopes,
    apps,
    createdAt: new Date(now).toISOString(),
    revokedAt: null,
    expiresAt: lifeMs === null ? null : new Date(now + lifeMs).toISOString(),
    lastUsedAt: null,
    replacedBy: null,
    ...(e2b && { e2b }),
    ...(previewsOf && { previewsOf }),
  };
  return { record, token };
}

function lifeOf({ createdAt, expiresAt }: TokenRecord): number | null {
  return expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt);
}

function requireLive(store: TokenStore, id: string): TokenRecord {
  const token = store.list().find((each) => each.id === id && isLive(each));
  if (token !== undefined) return token;
  throw new HibernautError("not_found", `There is no valid token ${id}. \`hibernaut tokens list\` shows all.`, {
    token_id: id,
  });
}

function unknownApp(apps: readonly string[]): HibernautError {
  const names = apps.join(", ").slice(0, 200);
  const message = `One of these apps does not exist: ${names}. Create it first with \`hibernaut apps create\`.`;
  return new HibernautError("not_found", message, { apps });
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
