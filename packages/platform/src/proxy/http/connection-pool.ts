/** The connections to all machines: busy ones, and idle ones that wait for the next request. */
import type { Socket } from "node:net";
import type { Lease } from "../contract.ts";
import type { Limits } from "./limits.ts";
import { proxyRefusal } from "./refusals.ts";
import { UpstreamConnection } from "./upstream.ts";

/** The machine sleeps or has ended while a connection to it was being made: whoever knows the machines is asked again. */
export class MachineLeft extends Error {
  override name = "MachineLeft";
}

interface MachineConnections {
  readonly all: Set<UpstreamConnection>;
  /** The one used last stands last and is taken first, so that the others grow old. */
  readonly idle: UpstreamConnection[];
  /** Connections that are being made. */
  coming: number;
  /** Aborted, and made anew, when the machine is forgotten: what was begun before is not kept. */
  leaving: AbortController;
}

export class ConnectionPool {
  readonly #limits: Limits;
  readonly #machines = new Map<string, MachineConnections>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** An idle connection to the lease's port. */
  take({ machineId, address, port }: Lease): UpstreamConnection | undefined {
    const idle = this.#machines.get(machineId)?.idle;
    if (idle === undefined) return undefined;
    for (let at = idle.length - 1; at >= 0; at -= 1) {
      const connection = idle[at] as UpstreamConnection;
      if (connection.port !== port || connection.address !== address) continue;
      idle.splice(at, 1);
      if (connection.usable) return connection;
      connection.destroy();
    }
    return undefined;
  }

  /**
   * Makes a new connection with `open`. Refuses with 503 when the machine has too many; rejects with
   * {@link MachineLeft} when the machine is forgotten meanwhile, of which the signal tells `open`.
   */
  async add(lease: Lease, open: (left: AbortSignal) => Promise<Socket>): Promise<UpstreamConnection> {
    const { machineId } = lease;
    const machine = this.#machine(machineId);
    if (machine.all.size + machine.coming >= this.#limits.machineConnections)
      throw proxyRefusal("overloaded", "The app has too many connections. Try again later.", { retryAfterS: 1 });
    machine.coming += 1;
    const { leaving } = machine;
    try {
      const socket = await open(leaving.signal);
      const connection = new UpstreamConnection(socket, lease, this.#limits, (gone) => this.#remove(machineId, gone));
      connection.retired = leaving.signal.aborted;
      machine.all.add(connection);
      return connection;
    } finally {
      machine.coming -= 1;
      this.#tidy(machineId, machine);
    }
  }

  /** Takes a connection back whose response has ended; keeps it if it can be used again. */
  give({ machineId }: Lease, connection: UpstreamConnection): void {
    const machine = this.#machines.get(machineId);
    if (machine === undefined || !connection.reusable || machine.idle.length >= this.#limits.machineIdleConnections)
      return connection.destroy();
    connection.reused = true;
    connection.idleSince = undefined;
    connection.resume();
    machine.idle.push(connection);
  }

  /** Closes the machine's idle connections, and busy ones as soon as their response has ended. */
  forget(machineId: string): void {
    const machine = this.#machines.get(machineId);
    if (machine === undefined) return;
    machine.leaving.abort(new MachineLeft("The machine has left."));
    machine.leaving = new AbortController();
    for (const connection of machine.all) connection.retired = true;
    for (const connection of machine.idle.splice(0)) connection.destroy();
  }

  /** Closes what was idle for too long. */
  sweep(now: number): void {
    const eldest = now - this.#limits.machineIdleMs;
    for (const { idle } of this.#machines.values()) {
      for (const connection of idle) connection.idleSince ??= now;
      const young = idle.findIndex(({ idleSince = now }) => idleSince > eldest);
      for (const connection of idle.splice(0, young === -1 ? idle.length : young)) connection.destroy();
    }
  }

  /** Closes all idle connections; busy ones belong to their exchanges. */
  close(): void {
    for (const machineId of this.#machines.keys()) this.forget(machineId);
  }

  count(): { open: number; idle: number } {
    let [open, idle] = [0, 0];
    for (const machine of this.#machines.values()) {
      open += machine.all.size + machine.coming;
      idle += machine.idle.length;
    }
    return { open, idle };
  }

  #machine(machineId: string): MachineConnections {
    const known = this.#machines.get(machineId);
    if (known !== undefined) return known;
    const machine: MachineConnections = { all: new Set(), idle: [], coming: 0, leaving: new AbortController() };
    this.#machines.set(machineId, machine);
    return machine;
  }

  #remove(machineId: string, connection: UpstreamConnection): void {
    const machine = this.#machines.get(machineId);
    if (machine === undefined) return;
    machine.all.delete(connection);
    const at = machine.idle.indexOf(connection);
    if (at !== -1) machine.idle.splice(at, 1);
    this.#tidy(machineId, machine);
  }

  /** Machines come and go; those without connections leave nothing behind. */
  #tidy(machineId: string, machine: MachineConnections): void {
    if (machine.all.size === 0 && machine.coming === 0) this.#machines.delete(machineId);
  }
}
