/** The machines' network for an effect, which has the record of its beginning. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { type Network, networkMachine } from "@hibernaut/network";

/** Where a machine may connect to may change while it starts: what holds is what its record says by now. */
export function withRulesOfNow(network: Network, current: () => MachineRecord): Network {
  return {
    mode: network.mode,
    allocate: (taken) => network.allocate(taken),
    owns: (address) => network.owns(address),
    requireRules: (egress) => network.requireRules(egress),
    govern: (machine) => network.govern(machine),
    detach: (machineId) => network.detach(machineId),
    attach: (machine, ports) => network.attach({ ...machine, egress: networkMachine(current()).egress }, ports),
  };
}
