/** The addresses that stand for names which machines may reach, for as long as a name server said so. */
import type { Subnet } from "@hibernaut/lib/ipv4";
import type { Answered } from "../../contract.ts";
import type { Names } from "../names.ts";
import { machineHost } from "../subnet.ts";
import { NAMED_SET } from "./rules.ts";

/** Programs look a name up and connect a moment later, whatever lifetime the answer has. Seconds. */
const LEAST_S = 60;
/** The owner of the name chooses the lifetime. Seconds. */
const MOST_S = 3_600;
/** How much of that time is left when an answer is written down again, so that few answers cost a run of nft. */
const RENEW_AT = 0.5;
/** Addresses of one machine. A name has a handful; one below `*.example.com` may be made for each question. */
export const MOST_LEARNT = 256;

/** What one machine has learnt: addresses, and when each is forgotten, in ms of a steady clock. */
type Learnt = Map<string, number>;

/** Which addresses each machine has learnt. */
export class LearntAddresses {
  readonly #learnt = new Map<string, Learnt>();

  /**
   * Takes note of an answer for a machine. Returns what nft has to do, empty when nothing, and undefined when the machine
   * has as many addresses as it may.
   */
  note(machine: string, answers: readonly Answered[], now: number): string[] | undefined {
    const known = this.#current(machine, now);
    const lines: string[] = [];
    for (const { address, ttlS } of answers) {
      const lifetimeS = Math.min(Math.max(ttlS, LEAST_S), MOST_S);
      const until = known.get(address);
      if (until !== undefined && until - now > lifetimeS * RENEW_AT * 1000) continue;
      if (until === undefined && known.size >= MOST_LEARNT) return undefined;
      known.set(address, now + lifetimeS * 1000);
      lines.push(`${machine} . ${address} timeout ${lifetimeS}s`);
    }
    return lines;
  }

  /** Forgets what a machine has learnt. Returns the elements of that. */
  forget(machine: string): string[] {
    const known = [...(this.#learnt.get(machine)?.keys() ?? [])];
    this.#learnt.delete(machine);
    return known.map((address) => `${machine} . ${address}`);
  }

  /** Forgets everything, because the kernel has. */
  clear(): void {
    this.#learnt.clear();
  }

  #current(machine: string, now: number): Learnt {
    const known = this.#learnt.get(machine) ?? new Map<string, number>();
    for (const [address, until] of known) if (until <= now) known.delete(address);
    this.#learnt.set(machine, known);
    return known;
  }
}

/** Returns a text that adds the elements, each with its whole time. Machines' addresses count on the bridge, too. */
export function learning({ egressTable: table }: Names, subnet: Subnet, lines: readonly string[]): string {
  const isMachine = (line: string) => machineHost(subnet, line.split(" ")[2] ?? "") !== undefined;
  return [...into("inet", table, lines), ...into("bridge", table, lines.filter(isMachine))].join("");
}

/** An element that is there keeps its time when it is added, so it is added, removed and added. */
function into(family: string, table: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const keys = lines.map((line) => line.replace(/ timeout .*/, ""));
  const set = `element ${family} ${table} ${NAMED_SET}`;
  return [
    `add ${set} { ${keys.join(", ")} }\n`,
    `delete ${set} { ${keys.join(", ")} }\n`,
    `add ${set} { ${lines.join(", ")} }\n`,
  ];
}
