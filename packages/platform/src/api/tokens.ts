/** Tokens: who may use the API. Only their SHA-256 is stored; 256 random bits need no slow hash. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { HibernautError } from "../domain/errors.ts";
import type { TokenRecord, TokenStore } from "../store/contract.ts";

/** Lets people and secret scanners see what a string is. */
const TOKEN_PREFIX = "hib_";

/** A token just made: the only moment at which it is readable. */
interface CreatedToken {
  record: TokenRecord;
  token: string;
}

/** Makes and stores a token. */
export function createToken(store: TokenStore, name: string): CreatedToken {
  const token = TOKEN_PREFIX + randomBytes(32).toString("base64url");
  const record = {
    id: randomBytes(6).toString("hex"),
    name,
    hash: hashOf(token),
    createdAt: new Date().toISOString(),
    revokedAt: null,
  };
  store.insert(record);
  return { record, token };
}

/** The record of a token that is live; undefined for any other string. */
export function verifyToken(store: TokenStore, token: string): TokenRecord | undefined {
  const hash = hashOf(token);
  const record = store.findByHash(hash);
  // The index found it by its hash already; this holds for any store, however it compares.
  if (!record || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash))) return undefined;
  return record.revokedAt === null ? record : undefined;
}

/** Ends a token. The last live one stays, because nobody could make another. */
export function revokeToken(store: TokenStore, id: string): void {
  const live = store.list().filter((token) => token.revokedAt === null);
  if (!live.some((token) => token.id === id)) {
    throw new HibernautError("not_found", `There is no live token ${id}. \`hibernaut tokens list\` shows all.`, {
      token_id: id,
    });
  }
  if (live.length === 1) {
    const message = `Token ${id} is the only one left. Make another with \`hibernaut tokens create\` before you revoke it.`;
    throw new HibernautError("failed_precondition", message, { token_id: id });
  }
  store.revoke(id, new Date().toISOString());
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
