/** Addresses of machines. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { MachineDependencies } from "./dependencies.ts";

type AddressPorts = Pick<MachineDependencies, "network" | "store" | "ownership">;

/** One that no machine has, in a cluster as far as this host knows. Store it, or claim it, before anybody else may ask. */
export function freeAddress({ network, store, ownership }: AddressPorts, besides?: Iterable<string>): string {
  const own = store.machines.list().map((machine) => machine.address);
  return network.allocate(new Set([...own, ...(ownership?.addresses() ?? []), ...(besides ?? [])]));
}

/** Another address for a machine, whose own does not belong to the network. Rejects as {@link Ownership.readdress} does. */
export async function anotherAddress(record: MachineRecord, ports: AddressPorts): Promise<string> {
  const free = (besides?: Iterable<string>) => freeAddress(ports, besides);
  return ports.ownership === undefined ? free() : ports.ownership.readdress(record, free);
}
