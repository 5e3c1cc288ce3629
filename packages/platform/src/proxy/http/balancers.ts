/** Load balancers in front of the HTTP server, whose connections begin with a header of the PROXY protocol. */
import { randomUUID } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import { background } from "../../lib/background.ts";
import { type AccessEntry, ProxyRefusal } from "../contract.ts";
import { readProxyHeader } from "../proxy-protocol.ts";
import { readStart } from "../tcp/read-start.ts";
import type { Limits } from "./limits.ts";
import { plainAddress, Trust } from "./trust.ts";

export interface BalancersOptions {
  /** Addresses and networks of the balancers. */
  from: readonly string[];
  limits: Pick<Limits, "headMs">;
  onAccess(entry: AccessEntry): void;
}

/** Reads the headers of balancers, and remembers whom they named until the connection is closed. */
export class Balancers {
  readonly #trust: Trust;
  readonly #options: BalancersOptions;
  /** The clients' addresses, by the ends of the connection: its TLS is another object with the same ends. */
  readonly #clients = new Map<string, string>();

  constructor(options: BalancersOptions) {
    this.#options = options;
    this.#trust = new Trust(options.from);
  }

  /** Returns the client's address. That of the connection, unless a balancer named another one. */
  clientOf(socket: Socket): string | undefined {
    return (this.#clients.size > 0 ? this.#clients.get(endsOf(socket)) : undefined) ?? socket.remoteAddress;
  }

  /** Makes a server whose connections go to `server`, over TLS or not, once their headers are read. */
  inFrontOf(server: Pick<Server, "emit">, { tls }: { tls: boolean }): Server {
    return createServer({ noDelay: true, allowHalfOpen: !tls }, (socket) => {
      socket.on("error", () => {}); // what is wrong with it shows in its close
      background(
        this.#welcome(socket).then((welcome) => welcome && pass(server, socket, tls)),
        "reading who is behind a balancer",
      );
    });
  }

  /** Whether the connection may be served. It is closed otherwise. */
  async #welcome(socket: Socket): Promise<boolean> {
    const address = plainAddress(socket.remoteAddress ?? "");
    if (!this.#trust.has(address)) return true;
    const late = new AbortController();
    const refusal = new ProxyRefusal(408, "request_timeout", "The connection did not begin in time.");
    const timer = setTimeout(() => late.abort(refusal), this.#options.limits.headMs);
    try {
      const header = await readStart(socket, {
        read: readProxyHeader,
        used: (reading) => (reading.kind === "header" ? reading.length : 0),
        signal: late.signal,
      });
      if (header.kind === "bad") throw new ProxyRefusal(400, "proxy_header_invalid", header.reason);
      if (header.origin !== undefined) {
        const ends = endsOf(socket);
        this.#clients.set(ends, header.origin.source.address);
        socket.once("close", () => this.#clients.delete(ends));
      }
      return true;
    } catch (error) {
      socket.destroy();
      this.#options.onAccess(entryOf(address, error instanceof ProxyRefusal ? error.code : "internal"));
      return false;
    } finally {
      clearTimeout(timer);
    }
  }
}

function pass(server: Pick<Server, "emit">, socket: Socket, tls: boolean): void {
  server.emit("connection", socket);
  // TLS reads below the socket.
  if (!tls) socket.resume();
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function entryOf(clientAddress: string, error: string): AccessEntry {
  return {
    ...{ time: Date.now(), requestId: randomUUID(), durationMs: 0, clientAddress, error },
    ...{ method: "", host: "", target: "", httpVersion: "", status: undefined, appName: undefined },
    ...{ bytesIn: 0, bytesOut: 0, wake: undefined, machineId: undefined },
  };
}
