/** Leases on machines: for a while, only the client that has the nonce changes the machine. */

/**
 * How long a lease lasts, in seconds. At most a day, as a sandbox does: a client that dies with a longer one would leave
 * a machine that nobody can change.
 */
export const LEASE_TTL_S = { minimum: 1, maximum: 24 * 60 * 60 } as const;

/**
 * How long one lasts that was taken without saying so, in seconds: enough for the few requests of one change, and a client
 * that died with it is forgotten within a minute.
 */
export const DEFAULT_LEASE_TTL_S = 60;

/** A sentence about what the lease is for, in characters. */
export const LEASE_DESCRIPTION_MAX_LENGTH = 200;

/** The header in which a client sends the nonce of its lease. */
export const LEASE_NONCE_HEADER = "hibernaut-lease-nonce";

/** A lease, as it is stored with its machine. */
export interface MachineLease {
  /** SHA-256 of the nonce, in hex. Only the client that took the lease was ever told the nonce. */
  nonceHash: string;
  /** The id of the token that took it. */
  owner: string;
  /** For people. Empty when there is none. */
  description: string;
  /** When it ends by itself, RFC 3339. */
  expiresAt: string;
}

/** A lease that counts from when it is stored: what it is for may take long to make. */
export interface LeaseTerms extends Omit<MachineLease, "expiresAt"> {
  /** Seconds. */
  ttlS: number;
}

/** Returns the lease that begins now. */
export function leaseFrom({ ttlS, ...lease }: LeaseTerms, now: Date): MachineLease {
  return { ...lease, expiresAt: new Date(now.getTime() + ttlS * 1000).toISOString() };
}

/** Returns the lease while it lives; null once it has ended, and when there is none. */
export function liveLease(lease: MachineLease | null | undefined, now: Date): MachineLease | null {
  return lease && Date.parse(lease.expiresAt) > now.getTime() ? lease : null;
}
