/** What machines were kept from connecting to, as the kernel remembers it. Pure. */
import { REFUSED_SET } from "./rules.ts";

/** A destination that a machine was kept from. */
interface RefusedDestination {
  machine: string;
  address: string;
  protocol: "tcp" | "udp";
  port: number;
}

interface Listing {
  nftables: { set?: { name: string; elem?: unknown[] } }[];
}

/** Reads what `nft --json list set` prints. Leaves out what it does not know. */
export function parseRefused(text: string): RefusedDestination[] {
  const { nftables } = JSON.parse(text) as Listing;
  const sets = nftables.flatMap(({ set }) => (set?.name === REFUSED_SET ? [set] : []));
  return sets.flatMap(({ elem = [] }) => elem.flatMap(destinationOf));
}

function destinationOf(element: unknown): RefusedDestination[] {
  const { elem } = element as { elem?: { val?: { concat?: unknown[] } } };
  const [machine, address, protocol, port] = elem?.val?.concat ?? [];
  if (typeof machine !== "string" || typeof address !== "string" || typeof port !== "number") return [];
  return protocol === "tcp" || protocol === "udp" ? [{ machine, address, protocol, port }] : [];
}

/** Tells what is new in one list after another. */
export class NewlyRefused {
  #before: ReadonlySet<string> = new Set();

  /** Returns what the list before did not have. */
  in(list: readonly RefusedDestination[]): RefusedDestination[] {
    const before = this.#before;
    const key = ({ machine, address, protocol, port }: RefusedDestination) =>
      `${machine} ${address} ${protocol} ${port}`;
    this.#before = new Set(list.map(key));
    return list.filter((one) => !before.has(key(one)));
  }
}
