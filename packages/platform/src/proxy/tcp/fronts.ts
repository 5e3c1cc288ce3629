/** The ports at which the proxy takes TCP connections. They open and close as machines with such services come and go. */
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../../lib/text.ts";
import { carry, type CarryOptions } from "./carry.ts";

export interface TcpFrontsOptions extends Pick<CarryOptions, "leases" | "limits" | "onAccess"> {
  /** The address to listen on. */
  host: string;
  /** Whether several processes may share the ports. */
  reusePort: boolean;
  log: { warn(fields: object, message: string): void };
}

/** A port that another program has may become free: it is tried again after this many milliseconds. */
const RETRY_MS = 5_000;
/** A connection on which nothing moved for this long can be cut off when the proxy ends: nobody is in the middle of it. */
const QUIET_MS = 500;
const LOOK_MS = 50;

interface Carried {
  client: Socket;
  machineId: string | undefined;
}

export class TcpFronts {
  readonly #options: TcpFrontsOptions;
  readonly #servers = new Map<number, Server>();
  readonly #retries = new Map<number, NodeJS.Timeout>();
  readonly #carried = new Set<Carried>();
  #owners: ReadonlyMap<number, string> = new Map();
  #closed = false;

  constructor(options: TcpFrontsOptions) {
    this.#options = options;
  }

  /** Opens the ports that are new, and closes those that belong to no app any more. Connections are left alone. */
  update(owners: ReadonlyMap<number, string>): void {
    if (this.#closed) return;
    this.#owners = owners;
    for (const port of owners.keys()) if (!this.#servers.has(port) && !this.#retries.has(port)) this.#open(port);
    for (const port of [...this.#servers.keys(), ...this.#retries.keys()]) if (!owners.has(port)) this.#shut(port);
  }

  /** The ports that are open. */
  get ports(): number[] {
    return [...this.#servers].filter(([, server]) => server.listening).map(([port]) => port);
  }

  /** Breaks the connections to a machine whose guest has ended: nobody is left who would close them. */
  forget(machineId: string, ended: boolean): void {
    if (!ended) return;
    for (const one of this.#carried) if (one.machineId === machineId) one.client.resetAndDestroy();
  }

  /** Takes no more connections, and cuts the others off as soon as they are quiet, or after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const port of [...this.#servers.keys(), ...this.#retries.keys()]) this.#shut(port);
    const end = performance.now() + graceMs;
    const moved = new Map<Carried, { bytes: number; at: number }>();
    while (this.#carried.size > 0) {
      const now = performance.now();
      for (const one of this.#carried) {
        const bytes = one.client.bytesRead + one.client.bytesWritten;
        const before = moved.get(one);
        if (before === undefined || before.bytes !== bytes) moved.set(one, { bytes, at: now });
        else if (now - before.at >= QUIET_MS) one.client.destroy();
        if (now > end) one.client.destroy();
      }
      await delay(LOOK_MS);
    }
  }

  #open(port: number): void {
    const { host, reusePort, log } = this.#options;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(port, socket));
    this.#servers.set(port, server);
    server.on("error", (error) => {
      if (server.listening) return log.warn({ port, reason: messageOf(error) }, "a TCP port has a problem");
      this.#servers.delete(port);
      log.warn(
        { port, host, app: this.#owners.get(port), reason: messageOf(error) },
        `the TCP port ${port} cannot be opened, and is tried again; does another program listen there?`,
      );
      this.#retries.set(port, setTimeout(() => this.#retry(port), RETRY_MS).unref());
    });
    server.listen({ host, port, reusePort });
  }

  #retry(port: number): void {
    this.#retries.delete(port);
    if (!this.#closed && this.#owners.has(port)) this.#open(port);
  }

  #shut(port: number): void {
    this.#servers.get(port)?.close();
    this.#servers.delete(port);
    clearTimeout(this.#retries.get(port));
    this.#retries.delete(port);
  }

  #accept(port: number, client: Socket): void {
    const app = this.#owners.get(port);
    if (app === undefined) return void client.destroy();
    const one: Carried = { client, machineId: undefined };
    this.#carried.add(one);
    const { leases, limits, onAccess } = this.#options;
    const onMachine = (machineId: string) => {
      one.machineId = machineId;
      return () => (one.machineId = undefined);
    };
    void carry({ client, app, port, leases, limits, onMachine, onAccess }).finally(() => this.#carried.delete(one));
  }
}
