/** Finds a name's addresses for a machine, and connects to one. */
import { Resolver } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { opened } from "../http/connect.ts";

/** A name server that is silent for longer has no answer. As long as the machines' own name server waits. */
const RESOLVE_MS = 2_000;
const RESOLVE_TRIES = 2;
/** How long one address may take to accept a connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** A name may have dozens; a client tries a few. */
const MOST_ADDRESSES = 3;

/** Why a name cannot be reached, for the log. */
export class NotReached extends Error {}

export interface Reach {
  /**
   * Connects to a port of a name, at an address that `may` be reached. Rejects with {@link NotReached}, and with the signal's
   * reason.
   */
  (name: string, port: number, signal: AbortSignal, may?: (address: string) => boolean): Promise<Socket>;
}

interface ReachOptions {
  /** Where names may lead. */
  mayLead(address: string, port: number): boolean;
  /** `address:port` of each name server. Default: those of the host. */
  nameServers?: readonly string[];
}

/** Returns a way to reach names as this host resolves them now: what a machine was told, or claims, does not count. */
export function reachFrom({ mayLead, nameServers }: ReachOptions): Reach {
  return async (name, port, signal, may = () => true) => {
    // One for each connection: the host's name servers change, and an end of one search must not end others.
    const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
    if (nameServers !== undefined) resolver.setServers([...nameServers]);
    const stop = () => resolver.cancel();
    signal.addEventListener("abort", stop, { once: true });
    const found = await resolver
      .resolve4(name)
      .catch((error: NodeJS.ErrnoException) => {
        throw new NotReached(`${name} does not resolve (${error.code ?? error.message})`);
      })
      .finally(() => signal.removeEventListener("abort", stop));
    signal.throwIfAborted();
    const addresses = found.filter((address) => mayLead(address, port) && may(address));
    if (addresses.length === 0) throw new NotReached(`${name} leads nowhere that machines may be led to`);
    return firstOf(addresses.slice(0, MOST_ADDRESSES), port, signal);
  };
}

async function firstOf(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let last = "";
  for (const host of addresses) {
    const place = `${host}:${port}`;
    const late = `${place} did not answer within ${CONNECT_MS} ms`;
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true, keepAlive: true });
    try {
      return await opened(socket, "connect", { place, late, timeoutMs: CONNECT_MS, signal });
    } catch (error) {
      signal.throwIfAborted();
      last = String(error);
    }
  }
  throw new NotReached(last);
}
