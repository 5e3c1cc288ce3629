/**
 * Hosts of a cluster in one process: real coordinators, proxies and TLS between them, on one local directory. Machines are
 * fakes, and their apps are servers on the machines' addresses.
 */
import { once } from "node:events";
import {
  createServer as createAppServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Cluster } from "@hibernaut/cluster";
import { KEYS, type OwnerRecord } from "@hibernaut/cluster/keys";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { AppRecord, MachineEvent, MachineRecord } from "@hibernaut/domain/machine";
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import type { Tracing } from "@hibernaut/telemetry";
import { expect, onTestFinished } from "vitest";
import type { Directory } from "../../../cluster/src/contract.ts";
import { LocalDirectory } from "../../../cluster/src/local/directory.ts";
import { DirectoryView } from "../../../cluster/src/view.ts";
import { budgetOf } from "../../../platform/test/helpers/connections.ts";
import {
  type FakePlatform,
  newWorld,
  SMALL,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { connectInProcess, type InProcessProxy } from "../../src/connect-in-process.ts";
import { ConnectedProxies } from "../../src/connected-proxies.ts";
import type { AccessEntry } from "../../src/contract.ts";
import { HostProxies } from "../../src/hosts/open.ts";
import { DEFAULT_LIMITS } from "../../src/http/limits.ts";
import { createProxyServer, type ProxyServer } from "../../src/http/server.ts";
import { Trust } from "../../src/http/trust.ts";
import { ProxyCoordinator } from "../../src/proxy-coordinator.ts";
import { placesOf, TcpFronts } from "../../src/tcp/fronts.ts";
import { until } from "../http/helpers.ts";
import { certificate, type Pair } from "../http/secured.ts";

export const APP = "shop";
const SETTINGS = {
  proxyMaxHeld: 100,
  proxyHoldTimeoutMs: 5_000,
  proxyConnectTimeoutMs: 2_000,
  proxyStallTimeoutMs: 60_000,
};

/** One certificate for all hosts: who may join is tested elsewhere. */
let pair: Pair | undefined;

export class TestHost {
  readonly name: string;
  readonly file: string;
  readonly world: World;
  readonly platform: FakePlatform;
  readonly directory: LocalDirectory;
  view: DirectoryView;
  readonly proxies: ConnectedProxies = new ConnectedProxies();
  readonly log: AccessEntry[] = [];
  readonly faults: unknown[] = [];
  readonly forwarded: string[] = [];
  coordinator!: ProxyCoordinator;
  hosts!: HostProxies;
  proxy!: InProcessProxy;
  server!: ProxyServer;
  tcp!: TcpFronts;
  port = 0;
  peerPort = 0;
  /** How many connections other hosts have made to this one. */
  peerConnections = 0;
  #silence: Promise<void> | undefined;
  #tracing: Tracing | undefined;
  readonly #peerSockets = new Set<TLSSocket>();
  #closePeer: () => Promise<void> = async () => {};

  private constructor(name: string, world: World, platform: FakePlatform, file: string) {
    this.name = name;
    this.world = world;
    this.platform = platform;
    this.file = file;
    this.directory = new LocalDirectory(file);
    this.view = new DirectoryView({ directory: heldBack(this.directory, () => this.#silence) });
  }

  /** @param moved a machine that was moved here from another host, which is stopped */
  static async start(name: string, file: string, moved?: Moved): Promise<TestHost> {
    const world = await newWorld();
    if (moved !== undefined) {
      const { app, record, event } = moved;
      world.store.apps.insert(app);
      world.store.machines.insert({ ...record, state: "stopped", snapshot: null }, event);
    }
    const host = new TestHost(name, world, await startPlatform(world), file);
    if (moved === undefined) host.platform.apps.create(APP);
    await host.#open();
    return host;
  }

  async #open(): Promise<void> {
    const { platform, proxies, view, directory, name } = this;
    pair ??= certificate("host", ["-addext", "subjectAltName=IP:127.0.0.1"]);
    const { key, cert } = pair;
    const tls = { key, cert, ca: [cert], ALPNProtocols: ["hib-proxy", "hib-tcp"] };
    const server = createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, (socket) => {
      this.peerConnections += 1;
      this.#peerSockets.add(socket);
      socket.once("close", () => this.#peerSockets.delete(socket));
      this.hosts.accept(socket, socket.alpnProtocol === "hib-tcp" ? "tcp" : "http");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.peerPort = (server.address() as AddressInfo).port;
    this.#closePeer = async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of this.#peerSockets) socket.destroy();
      await closed;
    };
    view.start();
    await this.up();
    const peers: Cluster["peers"] = {
      target: (other, service) => {
        const [address = "", port = ""] = (view.host(other)?.up?.peer ?? "").split(":");
        return { host: address, port: Number(port), tls: { ...tls, ALPNProtocols: [`hib-${service}`] } };
      },
    };
    const warn = (fields: object) => void this.faults.push(fields);
    const connections = budgetOf();
    this.hosts = new HostProxies({
      cluster: { host: name, view, directory, peers },
      settings: SETTINGS,
      tracing: this.#tracing,
      machines: connections.machines,
      log: { warn },
    });
    this.coordinator = new ProxyCoordinator({
      ...platform,
      ...{ proxies, suffixes: ["localhost"], idleCheckIntervalMs: 3_600_000, connectionsSurvive: false },
      remote: this.hosts.remote,
      isDraining: () => platform.drain.active,
      log: { warn },
    });
    platform.drain.subscribe((draining) => this.coordinator.drainChanged(draining));
    this.hosts.start(this.coordinator);
    this.proxy = connectInProcess(this.coordinator, {
      ...{ maxHeld: 100, holdTimeoutMs: SETTINGS.proxyHoldTimeoutMs, connectTimeoutMs: SETTINGS.proxyConnectTimeoutMs },
      onLeft: (id, ended) => this.server.forget(id, ended),
      onHostLeft: (host) => {
        this.server.forgetHost(host);
        this.tcp.forgetHost(host);
      },
      onForwarded: (host) => void this.forwarded.push(host),
      reach: this.hosts.reach,
    });
    this.server = createProxyServer({
      leases: this.proxy.broker,
      connections,
      tracing: this.#tracing,
      limits: { sweepMs: 20 },
      onAccess: (entry) => void this.log.push(entry),
      onFault: (fault) => void this.faults.push(fault),
    });
    ({ port: this.port } = await this.server.listen({ host: "127.0.0.1", port: 0 }));
    this.tcp = new TcpFronts({
      ...{ reusePort: false, leases: this.proxy.broker, limits: { ...DEFAULT_LIMITS, sweepMs: 20 } },
      ...{ isStranger: () => false, balancers: new Trust([]), connections },
      onAccess: (entry) => void this.log.push(entry),
      ...{ appFor: (hostname) => this.proxy.broker.appFor(hostname), log: { warn } },
      certificates: () => Promise.reject(new Error("No certificate was expected to be needed.")),
    });
  }

  /** Says that the host is up, where its proxy is. */
  async up(): Promise<void> {
    await this.write(`${KEYS.members}${this.name}`, { fingerprint: "f", joinedAt: "2026-01-01T00:00:00Z" });
    await this.write(`${KEYS.hosts}${this.name}`, { name: this.name, peer: `127.0.0.1:${this.peerPort}` });
  }

  async write(key: string, value: unknown): Promise<void> {
    const revision = await this.directory.transact([], [{ key, value: value === null ? null : JSON.stringify(value) }]);
    await this.view.reached(revision as number, AbortSignal.timeout(5_000));
  }

  /** Creates a machine whose app answers with `listener`, and claims it. Its state is then published. */
  async machine(
    listener: RequestListener,
    { service = {}, config = {}, listens, onUpgrade, onConnection }: MachineOptions = {},
  ): Promise<{ id: string; address: string; port: number }> {
    const app = createAppServer({ keepAliveTimeout: 0 }, listener);
    if (onUpgrade !== undefined) app.on("upgrade", onUpgrade);
    if (onConnection !== undefined)
      app.removeAllListeners("connection").on("connection", (socket) => {
        socket.on("error", () => {});
        onConnection(socket);
      });
    const { machines } = this.platform;
    const port = 8080;
    const services: ServiceConfig[] = [{ protocol: "http", internal_port: port, autostop: "suspend", ...service }];
    const { record } = await machines.create(APP, { config: { ...SMALL, services, ...config }, skipLaunch: true });
    if (listens !== undefined) this.world.host.listening.set(record.id, [{ address: listens, port }]);
    machines.start(APP, record.id);
    app.listen(port, record.address);
    await once(app, "listening");
    onTestFinished(() => app.close().closeAllConnections());
    await machines.wait(APP, record.id, ["running"], { timeoutMs: 5_000 });
    await this.claim(record.id);
    await until(() => this.view.state(record.id)?.state === "running", "the machine to be published");
    return { id: record.id, address: record.address, port };
  }

  async claim(id: string, epoch = 1): Promise<void> {
    const { name, address } = this.platform.machines.get(APP, id).record;
    const owner: OwnerRecord = { app: APP, name, host: this.name, epoch, address };
    await this.write(`${KEYS.machines}${id}`, owner);
  }

  async suspend(id: string): Promise<void> {
    this.platform.machines.suspend(APP, id);
    await this.platform.machines.wait(APP, id, ["suspended"], { timeoutMs: 5_000 });
    await until(() => this.view.state(id)?.state === "suspended", "the sleep to be published");
  }

  /** Waits until this host has heard that another host's machine is in a state. */
  async hears(id: string, state: string): Promise<void> {
    await until(() => this.view.state(id)?.state === state, `host ${this.name} to hear that ${id} is ${state}`);
    await this.settled();
  }

  /** Waits until this host has heard that another host is away. */
  async hearsAway(name: string): Promise<void> {
    await until(() => this.view.host(name)?.up === undefined, `host ${this.name} to hear that ${name} is away`);
    await this.settled();
  }

  /** Waits until this host's proxy knows a machine that runs. */
  async ready(): Promise<void> {
    await until(() => this.view.machines().some(({ id }) => this.view.state(id)?.state === "running"), "a machine");
    await this.settled();
  }

  /** Waits until what this host has heard has reached its proxy. */
  async settled(): Promise<void> {
    await this.proxy.settled();
  }

  /** Opens a port for TCP connections to the machines that this host knows. Resolves with the number of the port. */
  async openTcp(asked: number): Promise<number> {
    const owners = this.proxy.broker.tcpPorts().get(asked);
    if (owners === undefined) throw new Error(`No machine has the port ${asked}.`);
    this.tcp.update(placesOf(new Map([[asked, owners]]), ["127.0.0.1"]));
    await until(() => this.tcp.ports.length === 1, "the port to open");
    return asked;
  }

  /** How many requests wait at this host, its own and those of others. */
  held(): number {
    return (this.proxy.broker.held().get(APP) ?? 0) + this.hosts.held();
  }

  /** What another host needs to have the machine. */
  moving(id: string): Moved {
    const { store } = this.world;
    const [app, record, [event]] = [store.apps.get(APP), store.machines.get(id), store.machines.events(id, 1)];
    if (app === undefined || record === undefined || event === undefined) throw new Error(`There is no machine ${id}.`);
    return { app, record, event };
  }

  state(id: string): string {
    return this.platform.machines.get(APP, id).record.state;
  }

  /** Sends a request to this host's proxy. */
  ask(path: string, { method = "GET", headers = {}, body = "" }: Ask = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          host: "127.0.0.1",
          port: this.port,
          path,
          method,
          headers: { host: `${APP}.localhost`, ...headers },
          agent: false,
        },
        (response) => {
          const pieces: Buffer[] = [];
          response.on("data", (piece: Buffer) => pieces.push(piece));
          response.on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              trailers: response.trailers,
              body: Buffer.concat(pieces).toString("latin1"),
            }),
          );
        },
      );
      request.on("error", reject).end(body);
    });
  }

  /** The coordinator and the proxies of the platform end, and begin again. Machines stay as they are. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.view.close();
    this.view = new DirectoryView({ directory: heldBack(this.directory, () => this.#silence) });
    await this.#open();
  }

  /** The same, and requests are traced from then on. Wakes are not. */
  async restartTraced(tracing: Tracing): Promise<void> {
    this.#tracing = tracing;
    await this.restart();
  }

  /** From now on writes fail like this. Returns what ends that. */
  cannotWrite(error: Error): () => void {
    const transact = this.directory.transact.bind(this.directory);
    this.directory.transact = async () => {
      throw error;
    };
    return () => {
      this.directory.transact = transact;
    };
  }

  /** From now on the host does not hear what the others write. Returns what ends that. */
  hearsNothing(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#silence = promise;
    return resolve;
  }

  /** Its lease has ended. */
  async away(): Promise<void> {
    await this.write(`${KEYS.hosts}${this.name}`, null);
  }

  /** No other host reaches it any more, and what was open breaks. */
  async cutPeers(): Promise<void> {
    await this.#closePeer();
    this.#closePeer = async () => {};
  }

  async #stop(): Promise<void> {
    await this.tcp.close(0);
    await this.server.close(0);
    this.proxy.close();
    await this.cutPeers();
    await this.hosts.close();
    await this.coordinator.close();
  }

  async close(): Promise<void> {
    await this.#stop();
    await this.platform.close();
    await this.view.close();
    await this.directory.close();
    await this.world.dispose();
  }
}

/** The same directory, whose changes arrive late. */
function heldBack(directory: LocalDirectory, silence: () => Promise<void> | undefined): Directory {
  return {
    get: (...asked) => directory.get(...asked),
    list: (...asked) => directory.list(...asked),
    transact: (...asked) => directory.transact(...asked),
    lease: (...asked) => directory.lease(...asked),
    close: () => directory.close(),
    async *watch(...asked) {
      for await (const changes of directory.watch(...asked)) {
        await silence();
        yield changes;
      }
    },
  };
}

interface Moved {
  app: AppRecord;
  record: MachineRecord;
  event: MachineEvent;
}

interface MachineOptions {
  service?: Partial<ServiceConfig>;
  config?: Partial<MachineConfig>;
  /** The only address in the guest that the app listens on. By default, it listens on all. */
  listens?: string;
  /** In place of HTTP. */
  onConnection?(socket: Socket): void;
  onUpgrade?(request: IncomingMessage, socket: Duplex): void;
}

export interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  trailers: NodeJS.Dict<string>;
  body: string;
}

/** Nothing was logged as a fault, or as something to be warned of. */
export const noFaults = (...hosts: TestHost[]) => expect(hosts.flatMap(({ faults }) => faults)).toEqual([]);

/** Starts hosts with these names, which end when the test has finished. */
export async function startHosts<const N extends readonly string[]>(
  ...names: N
): Promise<{ [K in keyof N]: TestHost }> {
  const file = join(await tempFolder("hosts"), "directory.db");
  const hosts: TestHost[] = [];
  for (const name of names) hosts.push(await startHost(name, file));
  return hosts as { [K in keyof N]: TestHost };
}

/** Starts one more host, on the same directory. */
export async function startHost(name: string, file: string, moved?: Moved): Promise<TestHost> {
  const host = await TestHost.start(name, file, moved);
  onTestFinished(() => host.close());
  return host;
}
