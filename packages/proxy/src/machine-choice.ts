/** The machine that a request asks for, and the machines that it may be given to. */
import { type Address, addressOf } from "./addressing.ts";
import { isForNeighbours, sharingOf } from "./app-machines.ts";
import { choose } from "./balance.ts";
import type { RequestHead } from "./contract.ts";
import {
  conflictRefusal,
  machineCordonedRefusal,
  unknownMachineRefusal,
  unknownPortRefusal,
} from "./lease-refusals.ts";
import type { MachineTable } from "./machine-table.ts";
import type { RoutedMachine } from "./routed-machine.ts";
import { tcpPortOf } from "./tcp/ports.ts";

/** What a request asks for. */
export interface ChosenMachine {
  machine: RoutedMachine;
  port: number;
  /** No other machine will do. */
  only: boolean;
}

/** Returns the machine that a request asks for. Undefined if any will do. Refuses if there is no such machine. */
export function chosenMachine(table: MachineTable, app: string, request: RequestHead): ChosenMachine | undefined {
  const { to, host, fields, tcpPort } = request;
  if (tcpPort !== undefined && to === undefined)
    return host === "" ? undefined : namedForTcp(table, app, host, tcpPort);
  if (to !== undefined) return to.machineId === undefined ? undefined : sentTo(table, app, request, to.machineId);
  if (!table.ofApp(app).prepared.addressable) return undefined;
  const address = addressOf(table.labelOf(host), fields, (word) => table.find(app, word));
  return address && accepted(app, address);
}

/**
 * Returns the machines that a request may be given to, without those that it was given to in vain. A preferred machine is
 * the only one as long as it can take the request, or wakes for it.
 */
export function candidates(
  table: MachineTable,
  app: string,
  { tried, tcpPort, to }: Pick<RequestHead, "tried" | "tcpPort" | "to">,
  chosen: ChosenMachine | undefined,
): readonly RoutedMachine[] {
  if (chosen !== undefined) {
    const { machine, only } = chosen;
    const untried = !tried.includes(machine.id);
    if (only) return untried ? [machine] : [];
    if (untried && takes(machine, table.draining)) return [machine];
  }
  const { all: ofApp, prepared } = table.ofApp(app);
  const shared = tcpPort === undefined ? prepared.sharing : withPort(ofApp, tcpPort);
  // Another app may send requests only to the machines that allow it.
  const sender = to !== undefined && to.from !== app ? to.from : undefined;
  const all = sender === undefined ? shared : ofApp.filter(({ policy }) => policy.replayFrom.includes(sender));
  return tried.length === 0 ? all : all.filter(({ id }) => !tried.includes(id));
}

/** Returns the machines that a TCP connection to a port of the proxy may be given to: it names no machine. */
function withPort(all: readonly RoutedMachine[], tcpPort: number): readonly RoutedMachine[] {
  return sharingOf(all.filter(({ row }) => tcpPortOf(row.tcp, tcpPort) !== undefined));
}

/** Returns the machine that a TCP connection asks for by the hostname in its TLS. */
function namedForTcp(table: MachineTable, app: string, host: string, tcpPort: number): ChosenMachine | undefined {
  const label = table.ofApp(app).prepared.addressable ? table.labelOf(host) : undefined;
  if (label === undefined) return undefined;
  const machine = table.find(app, label);
  if (machine === undefined) throw unknownMachineRefusal(app, label);
  const port = tcpPortOf(machine.row.tcp, tcpPort)?.internal;
  if (port === undefined || !machine.policy.ownPorts.includes(port))
    throw unknownPortRefusal(app, machine.id, port ?? tcpPort);
  return uncordoned({ machine, port, only: true });
}

/** Whether the machine can take a request now, or as soon as it is awake. One without room cannot. */
function takes(machine: RoutedMachine, draining: boolean): boolean {
  const { send, hope } = choose([machine]);
  return send !== undefined || (hope && machine.state !== "running" && !draining);
}

function sentTo(table: MachineTable, app: string, { to, tcpPort }: RequestHead, id: string): ChosenMachine {
  const machine = table.get(id);
  if (machine?.row.app !== app) throw unknownMachineRefusal(app, id);
  // A host of an earlier release does not know that its services are for their network alone.
  if (tcpPort === undefined && isForNeighbours(machine)) throw unknownMachineRefusal(app, id);
  return uncordoned({ machine, port: to?.port ?? machine.policy.port, only: true });
}

function accepted(app: string, address: Address<RoutedMachine>): ChosenMachine {
  switch (address.kind) {
    case "unknown":
      throw unknownMachineRefusal(app, address.word);
    case "closed":
      throw unknownPortRefusal(app, address.machine.id, address.port);
    case "conflict":
      throw conflictRefusal(app);
    case "machine":
      return uncordoned(address);
  }
}

/** A request would wait in vain for a machine that its owner has cordoned. */
function uncordoned(chosen: ChosenMachine): ChosenMachine {
  const { id, app, cordoned } = chosen.machine.row;
  if (chosen.only && cordoned) throw machineCordonedRefusal(app, id);
  return chosen;
}
