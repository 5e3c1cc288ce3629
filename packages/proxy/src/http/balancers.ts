/** Load balancers in front of the HTTP server, whose connections begin with a header of the PROXY protocol. */
import { createServer, type Server, type Socket } from "node:net";
import type { ConnectionBudget } from "@hibernaut/connections";
import { background } from "@hibernaut/lib/background";
import { type AccessEntry, ProxyRefusal, unservedEntry } from "../contract.ts";
import { readBalancersHeader } from "../tcp/read-start.ts";
import type { Limits } from "./limits.ts";
import { toProxyRefusal } from "./refusals.ts";
import { plainAddress, Trust } from "./trust.ts";

interface BalancersOptions {
  /** Addresses and networks of the balancers. */
  from: readonly string[];
  limits: Pick<Limits, "headMs">;
  /** Where their connections have their seats, which remember whom a header named. */
  budget: ConnectionBudget;
  onAccess(entry: AccessEntry): void;
}

/** Reads the headers of balancers. */
export class Balancers {
  readonly #trust: Trust;
  readonly #options: BalancersOptions;

  constructor(options: BalancersOptions) {
    this.#options = options;
    this.#trust = new Trust(options.from);
  }

  /** Whether the address is one of a balancer. */
  has(address: string): boolean {
    return this.#trust.has(address);
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
    if (socket.destroyed) return false;
    const address = plainAddress(socket.remoteAddress ?? "");
    if (!this.#trust.has(address)) return true;
    const late = new AbortController();
    const refusal = new ProxyRefusal(408, "request_timeout", "The connection did not begin in time.");
    const timer = setTimeout(() => late.abort(refusal), this.#options.limits.headMs);
    try {
      const { origin } = await readBalancersHeader(socket, late.signal);
      if (origin === undefined) return true;
      return this.#options.budget.seatOf(socket)?.isOf(origin.source.address) ?? false;
    } catch (error) {
      socket.destroy();
      const { code } = toProxyRefusal(error);
      this.#options.onAccess(unservedEntry({ clientAddress: address, error: code }));
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
