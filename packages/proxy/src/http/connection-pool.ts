/** The connections to all machines: busy ones, and idle ones that are kept for the next request. */
import type { Socket } from "node:net";
import type { Shares } from "@hibernaut/connections";
import type { ConnectionKey } from "../contract.ts";
import { Intake } from "../intake.ts";
import { type AppRequest, MachineLeft } from "./app-request.ts";
import type { MoreOptions } from "./connect.ts";
import type { Limits } from "./limits.ts";
import { tooManyConnections } from "./refusals.ts";
import { SessionPool } from "./session-pool.ts";
import { UpstreamConnection } from "./upstream.ts";

interface MachineConnections {
  readonly all: Set<UpstreamConnection>;
  /** The connection that was used last is at the end and is taken first, so that the others grow old. */
  readonly idle: UpstreamConnection[];
  /** How many connections are being made. */
  coming: number;
  /** Aborted, and replaced, when the machine is forgotten: connections that were begun before are not kept. */
  leaving: AbortController;
}

/** Connects to a machine, unless the signal aborts. */
type Open = (left: AbortSignal, more?: MoreOptions) => Promise<Socket>;

export class ConnectionPool {
  readonly #limits: Limits;
  readonly #shares: Shares;
  readonly #machines = new Map<string, MachineConnections>();
  /** Those to apps that speak HTTP/2. */
  readonly #sessions: SessionPool;
  /** Those to the proxies of other hosts, as if each were one machine. Made for the first of them. */
  #peers: ConnectionPool | undefined;

  /** @param shares how many connections there may be to all machines, of which the kept ones leave half to others */
  constructor(limits: Limits, shares: Shares) {
    this.#limits = limits;
    this.#shares = shares;
    this.#sessions = new SessionPool(limits);
  }

  /** Returns an idle connection to the lease's port, or a place on one that takes many requests, if there is one. */
  take(lease: ConnectionKey): AppRequest | undefined {
    if (lease.peer !== undefined) return this.#peers?.take(asHost(lease));
    if (lease.http2 === true) return this.#sessions.take(lease);
    const { machineId, address, port } = lease;
    const idle = this.#machines.get(machineId)?.idle;
    if (idle === undefined) return undefined;
    for (let at = idle.length - 1; at >= 0; at -= 1) {
      const connection = idle[at] as UpstreamConnection;
      if (connection.port !== port || connection.address !== address) continue;
      if (at === idle.length - 1) idle.pop();
      else idle.splice(at, 1);
      if (connection.usable) return connection;
      connection.destroy();
    }
    return undefined;
  }

  /**
   * Makes a new connection with `open`. Refuses with 503 if the machine has too many. If the machine is forgotten in the
   * meantime, `open`'s signal aborts with {@link MachineLeft}.
   *
   * @param signal aborts when the request ends
   */
  async add(lease: ConnectionKey, open: Open, signal: AbortSignal): Promise<AppRequest> {
    if (lease.peer !== undefined) {
      this.#peers ??= new ConnectionPool({ ...this.#limits, machineIdleMs: this.#limits.peerIdleMs }, this.#shares);
      return this.#peers.add(asHost(lease), open, signal);
    }
    if (lease.http2 === true) return this.#sessions.add(lease, open, signal);
    const { machineId } = lease;
    const machine = this.#machine(machineId);
    if (machine.all.size + machine.coming >= this.#limits.machineConnections) throw tooManyConnections();
    machine.coming += 1;
    const { leaving } = machine;
    try {
      const intake = new Intake();
      const socket = await open(leaving.signal, { onread: intake.onread });
      const onClose = (gone: UpstreamConnection) => this.#remove(machineId, gone);
      const connection = new UpstreamConnection({ socket, intake, lease, limits: this.#limits, onClose });
      connection.retired = leaving.signal.aborted;
      machine.all.add(connection);
      return connection;
    } finally {
      machine.coming -= 1;
      this.#tidy(machineId, machine);
    }
  }

  /** Takes a connection back after its response. Keeps it if it can be used again. */
  give(lease: ConnectionKey, connection: AppRequest): void {
    if (lease.peer !== undefined) return this.#peers?.give(asHost(lease), connection);
    const { machineId } = lease;
    // A stream gives its place back itself.
    if (!(connection instanceof UpstreamConnection)) return;
    const machine = this.#machines.get(machineId);
    const keeps = this.#shares.ample && (machine?.idle.length ?? 0) < this.#limits.machineIdleConnections;
    if (machine === undefined || !connection.reusable || !keeps) return connection.destroy();
    connection.reused = true;
    connection.idleSince = undefined;
    connection.resume();
    machine.idle.push(connection);
  }

  /**
   * Closes the machine's idle connections now, and busy ones when their response has ended; now, too, if the machine's
   * guest has `ended` and nothing more will come.
   */
  forget(machineId: string, ended = false): void {
    this.#sessions.forget(machineId, ended);
    const machine = this.#machines.get(machineId);
    if (machine === undefined) return;
    machine.leaving.abort(new MachineLeft("The machine has left."));
    machine.leaving = new AbortController();
    for (const connection of machine.all) connection.retired = true;
    for (const connection of machine.idle.splice(0)) connection.destroy();
    if (ended) for (const connection of [...machine.all]) connection.abandon(new MachineLeft("The machine has ended."));
  }

  /** Another host is away: its connections may never say so. */
  forgetHost(host: string): void {
    this.#peers?.forget(host, true);
  }

  /** Closes connections that were idle for too long. */
  sweep(now: number): void {
    this.#peers?.sweep(now);
    this.#sessions.sweep(now);
    const eldest = now - this.#limits.machineIdleMs;
    for (const { idle } of this.#machines.values()) {
      for (const connection of idle) connection.idleSince ??= now;
      const young = idle.findIndex(({ idleSince = now }) => idleSince > eldest);
      for (const connection of idle.splice(0, young === -1 ? idle.length : young)) connection.destroy();
    }
  }

  /** Closes all idle connections. Busy ones belong to their exchanges. */
  close(): void {
    this.#peers?.close();
    this.#sessions.close();
    for (const machineId of this.#machines.keys()) this.forget(machineId);
  }

  count(): { open: number; idle: number } {
    let { open, idle } = this.#sessions.count();
    const peers = this.#peers?.count();
    if (peers !== undefined) [open, idle] = [open + peers.open, idle + peers.idle];
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

  /** Forgets a machine without connections. Machines come and go, and must leave nothing behind. */
  #tidy(machineId: string, machine: MachineConnections): void {
    if (machine.all.size === 0 && machine.coming === 0) this.#machines.delete(machineId);
  }
}

/** Any connection to a host will do for a request for any of its machines. */
function asHost({ peer, appName }: ConnectionKey): ConnectionKey {
  return { machineId: peer?.host ?? "", address: "", port: 0, appName };
}
