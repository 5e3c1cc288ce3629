/** Which fields of a request to believe, and who the client is. */
import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { Field } from "../contract.ts";
import { GuestSubnets } from "./guest-subnets.ts";

/**
 * Proxies in front of this one, whose `X-Forwarded-*`, `Forwarded` and `Hibernaut-*` fields are believed, or load balancers,
 * whose PROXY protocol is. A machine never is one: guests reach this proxy like anyone, and would choose who they are.
 */
export class Trust {
  /** Undefined if there are none, which is the usual case. */
  readonly #peers: BlockList | undefined;
  readonly #guests: Pick<GuestSubnets, "has">;

  /** @param peers addresses and networks: `10.0.0.1`, `10.1.2.0/24`, `fd00::/8` */
  constructor(peers: readonly string[], guests: Pick<GuestSubnets, "has"> = new GuestSubnets()) {
    this.#guests = guests;
    if (peers.length > 0) this.#peers = new BlockList();
    for (const peer of peers) {
      const [address = "", bits] = peer.split("/");
      const family = isIPv6(address) ? "ipv6" : "ipv4";
      if (!isIPv4(address) && !isIPv6(address)) throw new RangeError(`${peer} is not a valid IP address or network.`);
      this.#peers?.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
    }
  }

  /** Returns whether the address is one of a trusted proxy. */
  has(address: string): boolean {
    if (this.#peers === undefined) return false;
    // Machines have no IPv6.
    if (isIPv4(address)) return this.#peers.check(address, "ipv4") && !this.#guests.has(address);
    return isIPv6(address) && this.#peers.check(address, "ipv6");
  }

  /** Returns the nearest address on the way to the client that is not trusted. Anyone can write what comes before it. */
  clientOf(peer: string, fields: readonly Field[]): string {
    const hops = fields
      .filter((field) => field.key === "x-forwarded-for")
      .flatMap((field) => field.value.split(","))
      .map((hop) => plainAddress(hop.trim()));
    let client = peer;
    while (this.has(client)) {
      const next = hops.pop();
      if (next === undefined || (!isIPv4(next) && !isIPv6(next))) break;
      client = next;
    }
    return client;
  }
}

/** Returns an address with IPv4 in its usual form. A socket for both families reports it as `::ffff:1.2.3.4`. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && isIPv4(address.slice(7)) ? address.slice(7) : address;
}

/**
 * Returns whether only a trusted proxy may send the field. `_` counts as `-`: apps behind gateways that turn fields into
 * variables (CGI, WSGI) cannot tell `X_Forwarded_For` from the real one. Anyone may ask for a machine, which is up to the
 * app.
 */
export function needsTrust(key: string): boolean {
  const first = key.charCodeAt(0);
  if (first !== 0x78 && first !== 0x66 && first !== 0x68) return false; // x, f, h
  const name = key.includes("_") ? key.replaceAll("_", "-") : key;
  if (name.startsWith("hibernaut-")) return key !== "hibernaut-machine";
  return name === "forwarded" || name.startsWith("x-forwarded-") || name === REPLAY_SOURCE;
}

const REPLAY_SOURCE = "fly-replay-src";

/** Returns whether only this proxy may send the field: it tells an app that another one has sent a request on. */
export function isReplaySource(key: string): boolean {
  return key.length === REPLAY_SOURCE.length && key.replaceAll("_", "-") === REPLAY_SOURCE;
}
