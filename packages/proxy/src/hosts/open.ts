/** What the proxies of a cluster's hosts need of each other: one host's machines are told to all, and reached through it. */
import type { TLSSocket } from "node:tls";
import type { Cluster } from "@hibernaut/cluster";
import type { Shares } from "@hibernaut/connections";
import { findMachineMs } from "@hibernaut/domain/patience";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import type { Tracing } from "@hibernaut/telemetry";
import { connectInProcess, type InProcessProxy } from "../connect-in-process.ts";
import { DEFAULT_LIMITS } from "../http/limits.ts";
import type { TableMachine } from "../messages.ts";
import type { ProxyCoordinator } from "../proxy-coordinator.ts";
import { PeerFront } from "./peer-front.ts";
import { type ReachHost, SERVICES } from "./peer-lease.ts";
import { PeerLeases } from "./peer-leases.ts";
import { Publisher } from "./publisher.ts";
import { RemoteMachines } from "./remote-machines.ts";
import { TcpFront } from "./tcp-front.ts";
import { askToWake } from "./tcp-link.ts";

export interface HostProxiesOptions {
  cluster: Pick<Cluster, "host" | "view" | "directory" | "peers">;
  settings: Pick<Settings, "proxyMaxHeld" | "proxyHoldTimeoutMs" | "proxyConnectTimeoutMs" | "proxyStallTimeoutMs">;
  /** How many connections to machines there may be, by app. */
  machines: Shares;
  /** Absent when traces are off. */
  tracing?: Tracing | undefined;
  log: { warn(fields: object, message: string): void };
}

/** Requests of other hosts may take this long to end when the platform closes, in milliseconds: as at the proxy itself. */
const CLOSE_GRACE_MS = 8_000;

export class HostProxies {
  /** The machines of other hosts. */
  readonly remote: RemoteMachines;
  readonly #options: HostProxiesOptions;
  readonly #publisher: Publisher;
  readonly #end = new AbortController();
  #served: { http: PeerFront; tcp: TcpFront; proxy: InProcessProxy } | undefined;

  constructor(options: HostProxiesOptions) {
    this.#options = options;
    const { cluster } = options;
    this.remote = new RemoteMachines({
      cluster,
      wake: (row) => background(this.#wake(row), "waking a machine for another host"),
    });
    this.#publisher = new Publisher(options);
  }

  /** How this host's proxies connect to those of other hosts. */
  readonly reach: ReachHost = ({ host }, kind) => this.#options.cluster.peers.target(host, SERVICES[kind]);

  /** A proxy here needs one more machine, and has no request that could wait for it there. */
  async #wake({ app, id, remote }: TableMachine): Promise<void> {
    const host = remote?.host ?? "";
    try {
      await askToWake(this.#options.cluster.peers.target(host, "tcp"), { app, id }, this.#end.signal);
    } catch (error) {
      if (!this.#end.signal.aborted)
        this.#options.log.warn({ host, reason: messageOf(error) }, "a host cannot be reached");
    }
  }

  /** Begins to tell the other hosts about this host's machines, and to take requests for them. */
  start(coordinator: ProxyCoordinator): void {
    const { settings, machines, tracing, log } = this.#options;
    const patience = { holdTimeoutMs: settings.proxyHoldTimeoutMs, connectTimeoutMs: settings.proxyConnectTimeoutMs };
    const proxy = connectInProcess(coordinator, {
      ...{ ...patience, maxHeld: settings.proxyMaxHeld, everywhere: false, forVisitors: false },
      onLeft: (machineId, ended) => {
        http.forget(machineId, ended);
        tcp.forget(machineId, ended);
      },
      onTable: () => leases.tableChanged(),
    });
    const leases: PeerLeases = new PeerLeases({ broker: proxy.broker, isOwn: (id) => this.remote.isOwn(id) });
    const limits = {
      ...DEFAULT_LIMITS,
      ...{ findMachineMs: findMachineMs(patience), tunnelStallMs: settings.proxyStallTimeoutMs },
    };
    const tcp: TcpFront = new TcpFront({ leases, limits, machines });
    const http: PeerFront = new PeerFront({
      ...{ leases, limits, machines, tracing },
      onFault: (error) => log.warn({ err: error }, "a fault in the proxy, in a request of another host"),
    });
    this.#served = { http, tcp, proxy };
    this.#publisher.connect((send) => coordinator.connect(send, { everywhere: false, forVisitors: false }));
  }

  /** Serves a connection of another host's proxy. It is closed if this host does not take requests yet. */
  accept(socket: TLSSocket, kind: keyof typeof SERVICES): void {
    const server = this.#served?.[kind];
    if (server === undefined) socket.destroy();
    else server.accept(socket);
  }

  /** How many requests of other hosts wait for a machine. */
  held(): number {
    return [...(this.#served?.proxy.broker.held().values() ?? [])].reduce((sum, held) => sum + held, 0);
  }

  async close(): Promise<void> {
    this.#end.abort(new Error("The platform is closing."));
    this.#served?.tcp.close();
    await this.#served?.http.close(CLOSE_GRACE_MS);
    this.#served?.proxy.close();
    await this.#publisher.close();
    this.remote.close();
  }
}
