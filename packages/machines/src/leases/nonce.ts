/** The nonces of leases. Only their hashes are kept, as those of tokens: 128 random bits need no slow one. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { DEFAULT_LEASE_TTL_S, type LeaseTerms, type MachineLease } from "@hibernaut/domain/lease";

/** Nobody guesses one while a lease lives. */
const NONCE_BYTES = 16;

/** What is asked of a new lease. */
export interface LeaseWish {
  /** Seconds. Default: {@link DEFAULT_LEASE_TTL_S}. */
  ttl?: number | undefined;
  /** For people. Default: none. */
  description?: string | undefined;
  /** The id of the token that takes it. */
  owner: string;
}

/** A lease that was just made: the only moment at which its nonce is known. */
export interface NewLease {
  nonce: string;
  terms: LeaseTerms;
}

/** Makes a lease. It begins when it is stored with a machine. */
export function newLease({ ttl: ttlS = DEFAULT_LEASE_TTL_S, description = "", owner }: LeaseWish): NewLease {
  const nonce = randomBytes(NONCE_BYTES).toString("hex");
  return { nonce, terms: { nonceHash: hashOf(nonce), owner, description, ttlS } };
}

/** Whether the nonce is that of the lease. How long this takes says nothing about how much of it is right. */
export function isNonceOf(nonce: string, { nonceHash }: MachineLease): boolean {
  return timingSafeEqual(Buffer.from(hashOf(nonce)), Buffer.from(nonceHash));
}

function hashOf(nonce: string): string {
  return createHash("sha256").update(nonce).digest("hex");
}
