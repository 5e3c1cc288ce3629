/**
 * Sessions: a browser shows a token once and gets a cookie in its place, which scripts cannot read. A session may do what
 * its token may, and ends with it. Only the SHA-256 of its secret is stored; 256 random bits need no slow hash.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { SessionRecord, SessionStore, TokenRecord, TokenStore } from "@hibernaut/store";
import { isLive } from "./tokens.ts";

const HOUR_MS = 3_600_000;
/** How long a session lasts that is not used, in milliseconds: someone who comes back in the morning signs in again. */
export const SESSION_IDLE_MS = 12 * HOUR_MS;
/** It ends in any case after this time, in milliseconds, so that a stolen cookie does not work forever. */
const SESSION_MAX_MS = 30 * 24 * HOUR_MS;
/** Its use is noted at most this often, in milliseconds: a page makes many requests. */
const NOTE_MS = 60_000;
/** More browsers than one token is used in. */
export const SESSIONS_PER_TOKEN = 20;
/** More people than work with one platform. */
const MAX_SESSIONS = 1000;

/** A session that is valid, with its token and its end in milliseconds since 1970. */
export interface LiveSession {
  record: SessionRecord;
  token: TokenRecord;
  endsAt: number;
}

interface SessionsOptions {
  sessions: SessionStore;
  tokens: Pick<TokenStore, "get">;
  /** Receives a fault of the store while a use is noted. The session stays valid. */
  onFault(error: unknown): void;
  /** Milliseconds since 1970. */
  now?(): number;
}

/** Begins, finds and ends sessions. */
export class Sessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Begins a session for a token. Returns it with its secret, which nothing else ever shows. */
  begin(token: TokenRecord): LiveSession & { secret: string } {
    const secret = randomBytes(32).toString("base64url");
    const now = this.#now();
    const record = { hash: hashOf(secret), tokenId: token.id, createdAt: now, usedAt: now };
    const limits = { usedSince: now - SESSION_IDLE_MS, perToken: SESSIONS_PER_TOKEN, overall: MAX_SESSIONS };
    this.#options.sessions.insert(record, limits);
    return { record, token, endsAt: endOf(record, token), secret };
  }

  /** Returns the valid session of a secret; undefined for any other string. */
  find(secret: string): LiveSession | undefined {
    const hash = hashOf(secret);
    const record = this.#options.sessions.find(hash);
    if (record === undefined || !timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash))) return undefined;
    const token = this.#options.tokens.get(record.tokenId);
    const now = this.#now();
    if (token === undefined || !isLive(token, now) || endOf(record, token) <= now) return undefined;
    return { record, token, endsAt: endOf(record, token) };
  }

  /** Notes that a session is used, if that is due. Returns it with its new end, or undefined if nothing was noted. */
  use({ record, token }: LiveSession): LiveSession | undefined {
    const now = this.#now();
    if (now - record.usedAt < NOTE_MS) return undefined;
    try {
      this.#options.sessions.use(record.hash, now);
    } catch (error) {
      this.#options.onFault(error);
      return undefined;
    }
    const used = { ...record, usedAt: now };
    return { record: used, token, endsAt: endOf(used, token) };
  }

  /** Ends a session. */
  end({ record }: LiveSession): void {
    this.#options.sessions.remove(record.hash);
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

function endOf({ createdAt, usedAt }: SessionRecord, { expiresAt }: TokenRecord): number {
  const token = expiresAt === null ? Infinity : Date.parse(expiresAt);
  return Math.min(usedAt + SESSION_IDLE_MS, createdAt + SESSION_MAX_MS, token);
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
