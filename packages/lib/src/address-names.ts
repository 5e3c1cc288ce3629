/** Names that are IP addresses. Pure. */
import { isIP } from "node:net";

/** A last label that browsers take for a number: with one, a name is an IPv4 address, as 127.1 and 0x7f000001 are, or nothing. */
const NUMBER = /^(\d+|0x[0-9a-f]*)$/;

/** Whether a name in lowercase is an IP address, in any notation that browsers take for one. */
export function isAddress(name: string): boolean {
  return isIP(name) !== 0 || NUMBER.test(name.split(".").at(-1) ?? "");
}
