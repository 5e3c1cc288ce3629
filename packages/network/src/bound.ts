/** The network that the machines of a data directory belong to. Pure. */
import type { KnownMachine, NetworkMode } from "./contract.ts";

/** How many machines a message names before it only counts the others. */
const NAMED = 10;

/** Which mode an address is from. */
export function modeOf({ address }: Pick<KnownMachine, "address">): NetworkMode {
  return address.startsWith("127.") ? "user" : "bridge";
}

/**
 * Returns the mode that the machines belong to: the one whose loss would cost most of them their memory, otherwise the
 * one that most of them have an address from. Undefined without machines: the platform is then free to choose.
 */
export function boundMode(machines: readonly KnownMachine[]): NetworkMode | undefined {
  const count = (mode: NetworkMode, memory?: KnownMachine["memory"]) =>
    machines.filter((machine) => modeOf(machine) === mode && (memory === undefined || machine.memory === memory))
      .length;
  const more = (memory?: KnownMachine["memory"]) => count("bridge", memory) - count("user", memory);
  if (machines.length === 0) return undefined;
  return (more("awake") || more("asleep") || more()) >= 0 ? "bridge" : "user";
}

/** The ids of machines for a sentence: `3f9c01ab22de41, 9ab2 and 4 more`. */
export function idsOf(machines: readonly { id: string }[]): string {
  const named = machines.slice(0, NAMED).map(({ id }) => id);
  const more = machines.length - named.length;
  return more === 0 ? named.join(", ") : `${named.join(", ")} and ${more} more`;
}
