/** Addresses of machines. */
import type { MachineDependencies } from "./dependencies.ts";

/** One that no machine has. Store it before anybody else may ask. */
export function freeAddress({ network, store }: Pick<MachineDependencies, "network" | "store">): string {
  return network.allocate(new Set(store.machines.list().map((machine) => machine.address)));
}
