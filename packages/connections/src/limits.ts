/** How many connections a process may have, so that it can still open files. Pure. */

/**
 * The part of a process's descriptors that connections never get: for the database, the log, and the disks and channels of
 * machines, of which a running one has a few. Without one, the platform cannot read the state of what it runs.
 */
const RESERVED = 0.25;
/** What Linux has given to processes for decades, for a system that does not tell. */
const USUAL_FILES = 1024;

/**
 * Connections that wait in the kernel until the process takes them, for each port. When there is no room, the kernel drops
 * what clients send, and they try again after 0.2 to 3 s. Node's own 511 are full within milliseconds of a rush; the kernel
 * allows no more than `net.core.somaxconn`, which is 4096 since Linux 5.4.
 */
export const BACKLOG = 4096;

/**
 * Requests that a port carries out at once whose requests may last: one waits for a minute, or follows a program for days.
 * A client that is alone gets half, one for each machine that a bridge has room for.
 */
const REQUESTS_AT_ONCE = 2048;

export interface ConnectionLimits {
  /** Connections of clients, at all ports together. */
  clients: number;
  /** Connections to machines. As many: a request has one of each. */
  machines: number;
  /** Connections of one client address. 0: as many as are left to others. */
  perAddress: number;
  /** Requests that are carried out at once, at each port that limits them. */
  requests: number;
}

/**
 * Returns the limits of a process.
 *
 * @param mostFiles how many descriptors it may have; undefined if that is not known
 */
export function connectionLimits(mostFiles: number | undefined, perAddress = 0): ConnectionLimits {
  const each = Math.max(1, Math.floor(((mostFiles ?? USUAL_FILES) * (1 - RESERVED)) / 2));
  return { clients: each, machines: each, perAddress, requests: REQUESTS_AT_ONCE };
}

/** The connections of one client, or of all. */
export interface Held {
  open: number;
  /** How many of them wait for a request. */
  idle: number;
}

/** Why a connection is refused: all others are in use, or its client has too many. */
export type Refused = "full" | "address";

/**
 * Decides what becomes of a client's next connection: there is room, or it takes the place of the eldest one that waits
 * (of its own client, or of any), or it is refused.
 *
 * @param of the client's connections
 * @param many whether it stands for many clients, such as a proxy in front of this one: then it has no limit of its own
 */
export function placeFor(
  all: Held,
  of: Held,
  { clients, perAddress }: ConnectionLimits,
  many = false,
): "free" | "own" | "any" | Refused {
  const full = all.open >= clients;
  // What waits for others is free: it gives way.
  const left = clients - (all.open - all.idle) - of.idle;
  const over = !many && of.open >= Math.min(left, perAddress === 0 ? clients : perAddress);
  if (!full && !over) return "free";
  if (of.idle > 0) return "own";
  if (!over && all.idle > 0) return "any";
  return full ? "full" : "address";
}

/** How IPv4 addresses look to a socket that listens on IPv6. */
const MAPPED = "::ffff:";
/** A network of IPv6 has 64 of the 128 bits: the owner of one address has all others of its network. */
const NETWORK_GROUPS = 4;

/** Returns what stands for the client of an address: its IPv4 address, or its network of IPv6. */
export function clientKey(address: string): string {
  if (!address.includes(":")) return address;
  if (address.startsWith(MAPPED) && address.includes(".")) return address.slice(MAPPED.length);
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return groups.slice(0, NETWORK_GROUPS).join(":");
}
