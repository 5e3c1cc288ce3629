/** The users that machines' QEMUs run as. Pure. */
import type { NetworkAttachment } from "@hibernaut/domain/guest-network";
import { parseAddress } from "@hibernaut/lib/ipv4";

/** How many addresses a network can have that we make: the last three bytes of IPv4 addresses in 10.0.0.0/8 or 127.0.0.0/8. */
export const USERS = 2 ** 24;

/**
 * The uid, and gid, of a machine: no two machines of a platform have the same address in a network, so none have the same
 * user, and nothing has to be kept or returned.
 */
export function uidOf(network: NetworkAttachment, firstUid: number): number {
  const address = network.mode === "user" ? network.address : (network.guest.address.split("/")[0] ?? "");
  const number = parseAddress(address);
  if (number === undefined) throw new Error(`${address} is not an IPv4 address`);
  return firstUid + (number % USERS);
}
