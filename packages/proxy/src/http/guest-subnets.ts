/**
 * Which addresses are those of machines, of any platform on this host. A list of trusted networks may contain them, but a
 * guest is never one of those whom it is about.
 */
import { readFileSync } from "node:fs";
import { endianness } from "node:os";
import { parseAddress, type Subnet, size } from "@hibernaut/lib/ipv4";
import { isBridgeName } from "@hibernaut/network";

/** The routes of this host. A bridge has one from before its first machine exists. */
const ROUTES = "/proc/net/route";
/** A platform takes longer than this, in milliseconds, from its bridge to the first packet of a machine. */
const FRESH_MS = 250;

/** Returns the subnets of the bridges in a table of routes as Linux prints it. Pure. */
function bridgeSubnets(routes: string): Subnet[] {
  return routes
    .split("\n")
    .map((line) => line.split("\t"))
    .filter(([device = ""]) => isBridgeName(device))
    .map(([, base = "", , , , , , mask = ""]) => ({ base: numberOf(base), prefix: bitsOf(numberOf(mask)) }));
}

export class GuestSubnets {
  readonly #read: () => string;
  /** Undefined until they could be read. */
  #subnets: Subnet[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(read: () => string = () => readFileSync(ROUTES, "latin1")) {
    this.#read = read;
  }

  /** Whether the address is a machine's, as far as is known: while nothing is, each may be one. */
  has(address: string): boolean {
    const now = performance.now();
    if (now - this.#readAt > FRESH_MS) this.#look(now);
    if (this.#subnets === undefined) return true;
    if (this.#subnets.length === 0) return false;
    const number = parseAddress(address);
    return number !== undefined && this.#subnets.some((one) => number >= one.base && number < one.base + size(one));
  }

  #look(now: number): void {
    this.#readAt = now;
    try {
      this.#subnets = bridgeSubnets(this.#read());
    } catch {
      // Without procfs, or a descriptor to read it with: what was known stays true.
    }
  }
}

/** A number of the kernel's, which prints the bytes of the network as if they were one of this machine's. */
function numberOf(hex: string): number {
  const bytes = Buffer.from(hex, "hex");
  return endianness() === "LE" ? bytes.readUInt32LE(0) : bytes.readUInt32BE(0);
}

function bitsOf(mask: number): number {
  return mask.toString(2).replaceAll("0", "").length;
}
