/** Applies the coordinator's messages to a proxy's table, and serves the waiting requests that they help. */
import type { MachineState } from "@hibernaut/domain/machine";
import type { AppQueues } from "./app-queues.ts";
import type { LoadReporter } from "./load-reporter.ts";
import type { MachineTable } from "./machine-table.ts";
import { type CoordinatorLink, policyIn, type TableMachine, type ToProxy } from "./messages.ts";
import type { RoutedMachine } from "./routed-machine.ts";

interface TableUpdaterPorts {
  table: MachineTable;
  queues: Pick<AppQueues<unknown>, "needs" | "serve">;
  reporter: LoadReporter;
  link: CoordinatorLink;
  /** Requests a wake, once until the machine's state changes. */
  wake(machine: RoutedMachine): void;
  /**
   * The machine is about to sleep, or has left: connections to it are of no more use. Those in use end by themselves,
   * unless its guest has `ended`: nobody is left who would close them.
   */
  onLeft(machineId: string, ended: boolean): void;
  /** Another host is away: connections to it are of no more use, and may never say so. */
  onHostLeft(host: string): void;
  /** Milliseconds of a steady clock. */
  now(): number;
}

/** States in which a machine has no guest, and no snapshot of the one that it had in {@link WITH_GUEST}. */
const WITHOUT_GUEST: ReadonlySet<MachineState> = new Set(["restarting", "starting", "failed", "stopped"]);
const WITH_GUEST: ReadonlySet<MachineState> = new Set(["running", "suspending", "stopping", "updating"]);

/** Whether the guest that had connections is gone. One that sleeps still has them. */
function guestEnded(before: MachineState | undefined, now: MachineState): boolean {
  if (before === undefined || !WITH_GUEST.has(before) || !WITHOUT_GUEST.has(now)) return false;
  // A suspend may be followed by a start without a rest in between.
  return !(before === "suspending" && now === "starting");
}

/** Whether the guest of a machine that sleeps is gone: an update or a new secret takes its memory, or a resume fails. */
function memoryEnded(before: TableMachine | undefined, now: TableMachine): boolean {
  if (now.withoutMemory === undefined || before === undefined || before.withoutMemory !== undefined) return false;
  return before.state === "suspended" || before.state === now.state || now.state === "suspended";
}

export class TableUpdater {
  readonly #ports: TableUpdaterPorts;

  constructor(ports: TableUpdaterPorts) {
    this.#ports = ports;
  }

  apply(message: ToProxy): void {
    switch (message.kind) {
      case "table":
        return this.#replace(message);
      case "machine":
        this.#update(message.machine);
        return this.#ports.queues.serve(message.machine.app);
      case "gone":
        return this.#remove(message.id, true);
      case "hostnames":
        this.#ports.table.hostnames = message.hostnames;
        this.#ports.table.reserved = new Set(message.reserved);
        return;
      case "challenges":
        this.#ports.table.setChallenges(message);
        return this.#ports.link.send({ kind: "noted", question: message.question });
      case "others":
        for (const [id, load] of Object.entries(message.loads)) this.#change(id, { others: load });
        return;
      case "draining":
        return this.#setDraining(message.draining);
      case "drain":
        return this.#drain(message);
      case "undrain":
        return this.#change(message.id, { draining: false, wakeRequested: false });
      case "wake_failed":
        return this.#wakeFailed(message);
    }
  }

  /**
   * The platform is out of reach: it puts nothing to sleep, and wakes are requested again once it is back.
   */
  disconnected(): void {
    for (const machine of this.#ports.table.all()) Object.assign(machine, { draining: false, others: 0 });
    this.#serveAll();
  }

  /** Requests that wait for a wake are refused at once, or wait for one again. */
  #setDraining(draining: boolean): void {
    const { table } = this.#ports;
    table.draining = draining;
    for (const machine of table.all()) machine.wakeRequested = false;
    this.#serveAll();
  }

  #serveAll(): void {
    const { table, queues } = this.#ports;
    for (const app of table.apps()) queues.serve(app);
  }

  #replace({ machines, ...rest }: Extract<ToProxy, { kind: "table" }>): void {
    const { table, reporter } = this.#ports;
    const { hostnames, suffixes, connectionsSurvive, draining, gateway } = rest;
    Object.assign(table, { hostnames, suffixes, connectionsSurvive, draining, gateway });
    table.reserved = new Set(rest.reserved);
    table.setChallenges(rest);
    table.appsByAddress.clear();
    const present = new Set(machines.map(({ id }) => id));
    for (const { id } of table.all()) if (!present.has(id)) this.#remove(id, true);
    for (const row of machines) this.#update(row);
    // A platform that is new, or back, does not know what was requested before.
    for (const machine of table.all()) {
      Object.assign(machine, { draining: false, wakeRequested: false, others: 0 });
      reporter.changed(machine.id);
    }
    this.#serveAll();
  }

  #update(row: TableMachine): void {
    const { table, onLeft, onHostLeft, wake, reporter } = this.#ports;
    // An address is given to another machine only after this one is gone, so the newest word about it is right.
    table.appsByAddress.set(row.address, row.app);
    const policy = policyIn(row);
    if (policy === null) return this.#remove(row.id, false);
    const known = table.get(row.id)?.row;
    const before = known?.state;
    const { machine, moved } = table.put(row, policy);
    if (row.remote?.peer === null && known?.remote?.peer !== null) onHostLeft(row.remote.host);
    if (known !== undefined && known.remote?.host !== row.remote?.host) {
      // It has moved: its guest is elsewhere now, and the load there is told by its host.
      onLeft(row.id, true);
      return reporter.changed(row.id);
    }
    if (row.remote === undefined && memoryEnded(known, row)) onLeft(row.id, true);
    if (!moved || row.remote !== undefined) return;
    if (row.state !== "running") onLeft(row.id, guestEnded(before, row.state));
    if (this.#isNeeded(machine)) wake(machine);
  }

  /** The machine was suspended from outside with requests open, which would otherwise hang or be cut off. */
  #isNeeded({ row, open, tunnels }: RoutedMachine): boolean {
    if (row.state !== "suspending" && row.state !== "suspended") return false;
    return open.requests > (this.#ports.table.connectionsSurvive ? tunnels : 0);
  }

  #remove(id: string, ended: boolean): void {
    const { table, queues, onLeft } = this.#ports;
    const machine = table.remove(id);
    if (machine === undefined) return;
    onLeft(id, ended);
    queues.serve(machine.row.app);
  }

  #change(
    id: string,
    change: Partial<Pick<RoutedMachine, "others" | "draining" | "wakeRequested" | "failedAt">>,
  ): void {
    const machine = this.#ports.table.get(id);
    if (machine === undefined) return;
    Object.assign(machine, change);
    this.#ports.queues.serve(machine.row.app);
  }

  /** Agrees that a machine sleeps if this proxy has not used it for the idle time and no request of its app waits. */
  #drain({ id, question, idleMs }: Extract<ToProxy, { kind: "drain" }>): void {
    const { table, queues, link, onLeft, now } = this.#ports;
    const machine = table.get(id);
    const agrees = ({ open, row: { app, tcp = [] } }: RoutedMachine) => {
      const ports = tcp.map(({ port }) => port);
      return open.requests === 0 && !queues.needs(app, id, ports) && open.idleMs(now()) >= idleMs;
    };
    const agreed = machine === undefined || agrees(machine);
    if (agreed && machine !== undefined) {
      machine.draining = true;
      onLeft(id, false);
      // A worker whose last connection has just ended must not sleep, and the coordinator may not know that yet.
      if (machine.policy.worker) this.#ports.reporter.flush();
    }
    link.send({ kind: "drained", question, agreed });
  }

  #wakeFailed({ id, kind: _kind, ...refusal }: Extract<ToProxy, { kind: "wake_failed" }>): void {
    const { table, now } = this.#ports;
    const machine = table.get(id);
    if (machine === undefined) return;
    machine.row = { ...machine.row, reason: refusal.message };
    machine.refuse(refusal);
    this.#change(id, { failedAt: now() });
  }
}
