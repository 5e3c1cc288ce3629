/**
 * Gives requests to machines: routes them to an app, leases a machine that is running, and holds requests while a
 * machine wakes. Each proxy has one. About sleeping it decides only whether it needs a machine itself.
 */
import { isDeepStrictEqual } from "node:util";
import { AppQueues } from "./app-queues.ts";
import { choose, isReady } from "./balance.ts";
import {
  type ClientEnd,
  type Destination,
  type Lease,
  type LeaseProvider,
  type LeaseStart,
  ProxyRefusal,
  type ReplayOrder,
  type RequestHead,
} from "./contract.ts";
import { MoveWaits } from "./hosts/move-waits.ts";
import { PeerLease, type PeerLeaseKeeper, type ReachHost, unreachableHosts } from "./hosts/peer-lease.ts";
import { challengeKey } from "./http/challenge.ts";
import { WEBSOCKET } from "./http/websocket.ts";
import { httpsLocation } from "./https-redirect.ts";
import {
  chosenMachineRefusal,
  cordonHint,
  drainingRefusal,
  httpsRedirect,
  noMachineRefusal,
  unknownHostRefusal,
  wakeRefusal,
  wakingRefusal,
} from "./lease-refusals.ts";
import { LoadReporter } from "./load-reporter.ts";
import { type ChosenMachine, candidates, chosenMachine } from "./machine-choice.ts";
import { type LeaseKeeper, MachineLease } from "./machine-lease.ts";
import { MachineTable } from "./machine-table.ts";
import { type CoordinatorLink, policyIn, type ToProxy } from "./messages.ts";
import type { QueueLimits } from "./queue.ts";
import { replayTarget } from "./replay-target.ts";
import type { RoutedMachine } from "./routed-machine.ts";
import { TableUpdater } from "./table-updater.ts";
import { ownPortsByApp, type PortApps, portOwners, tcpPortOf } from "./tcp/ports.ts";
import { TrafficReporter } from "./traffic-reporter.ts";
import { isVisit, waitsForColdStart } from "./wake-page.ts";
import { WorkerConnection } from "./worker-connection.ts";

export interface LeaseBrokerOptions extends QueueLimits {
  link: CoordinatorLink;
  /** How long a machine's port may take to answer once the machine is running, in milliseconds. */
  connectTimeoutMs: number;
  /** As in {@link TableUpdater}: connections to the machine are of no more use. */
  onLeft?(machineId: string, ended: boolean): void;
  /** As in {@link TableUpdater}: connections to the host are of no more use. */
  onHostLeft?(host: string): void;
  /** Returns the port on which this proxy serves HTTPS. Undefined if it does not. */
  tlsPort?(): number | undefined;
  /** Which apps each port for TCP connections belongs to may have changed. `isNew`: a machine that was made or updated has it. */
  onPorts?(isNew: (port: number) => boolean): void;
  /** What the broker knows about machines has changed. */
  onTable?(): void;
  /** A request was given to a machine that woke for it. */
  onWake?(app: string, wake: LeaseStart): void;
  /** A machine of another host answered a request. */
  onForwarded?(host: string): void;
  /** How to connect to the proxies of other hosts. By default, there are none. */
  reach?: ReachHost;
  /** For tests: milliseconds of a steady clock. */
  now?(): number;
}

export class LeaseBroker implements LeaseProvider, LeaseKeeper, PeerLeaseKeeper {
  readonly now: () => number;
  /** What the coordinator was told last of ports that cannot be opened. */
  #toldClosed = "{}";
  /** The same of ports at which this proxy takes connections. */
  #toldTaken = "";
  readonly #options: LeaseBrokerOptions;
  readonly #table: MachineTable;
  readonly #queues: AppQueues<Lease>;
  readonly #reporter: LoadReporter;
  readonly #traffic: TrafficReporter;
  readonly #updater: TableUpdater;
  readonly #moves: MoveWaits = new MoveWaits();

  constructor(options: LeaseBrokerOptions) {
    this.#options = options;
    this.now = options.now ?? (() => performance.now());
    this.#table = new MachineTable(this.now);
    this.#queues = new AppQueues(options, (app) => cordonHint(app, this.#table.ofApp(app).all));
    this.#reporter = new LoadReporter(this.#table, options.link);
    this.#traffic = new TrafficReporter(options.link);
    this.#updater = new TableUpdater({
      table: this.#table,
      queues: this.#queues,
      reporter: this.#reporter,
      link: options.link,
      wake: (machine) => this.onWanted(machine),
      onLeft: (machineId, ended) => options.onLeft?.(machineId, ended),
      onHostLeft: (host) => options.onHostLeft?.(host),
      now: this.now,
    });
  }

  challengeAnswer(hostname: string, target: string): string | undefined {
    const { challenges } = this.#table;
    const key = challengeKey(hostname, target);
    return Object.hasOwn(challenges, key) ? challenges[key] : undefined;
  }

  get challengeCertificates(): ReadonlyMap<string, string> {
    return this.#table.challengeCertificates;
  }

  get connectionsSurvive(): boolean {
    return this.#table.connectionsSurvive;
  }

  route(hostname: string): string {
    const app = this.#table.appFor(hostname);
    if (app === undefined || !this.#table.ofApp(app).prepared.takesHttp) throw unknownHostRefusal(hostname);
    return app;
  }

  leaseNow(app: string, request: RequestHead): Lease | undefined {
    const { forcesHttps, hasWakePage } = this.#table.ofApp(app).prepared;
    const location = forcesHttps ? httpsLocation(request, this.#options.tlsPort?.()) : undefined;
    if (location !== undefined) throw httpsRedirect(app, location);
    const chosen = chosenMachine(this.#table, app, request);
    // No request overtakes those that wait for the same.
    const waits = this.#queues.waitsIn(app, chosen?.machine.id ?? request.tcpPort);
    const lease = waits ? undefined : this.#leaseOrWake(app, request, chosen, request.since);
    if (lease === undefined && hasWakePage && isVisit(request)) {
      const machines = candidates(this.#table, app, request, chosen);
      if (waitsForColdStart(machines)) {
        for (const machine of machines) machine.pageAt = this.now();
        throw wakingRefusal(app);
      }
    }
    return lease;
  }

  waitForLease(app: string, request: RequestHead, signal: AbortSignal): Promise<Lease> {
    const chosen = () => chosenMachine(this.#table, app, request);
    const machine = chosen()?.machine;
    return this.#queues.wait(app, {
      since: request.since ?? this.now(),
      lane: machine?.id ?? request.tcpPort,
      holdTimeoutMs: machine?.policy.holdTimeoutMs ?? this.#table.ofApp(app).prepared.holdTimeoutMs,
      signal,
      // The machine may have been destroyed or cordoned in the meantime.
      attempt: (since) => this.#leaseOrWake(app, request, chosen(), since),
    });
  }

  replayTo(order: ReplayOrder, fromApp: string): Destination {
    const target = replayTarget(order, fromApp, this.#table);
    if (target instanceof ProxyRefusal) throw target;
    return target;
  }

  /** The host's address in the machines' network, if they have one. */
  get gateway(): string | undefined {
    return this.#table.gateway;
  }

  appOfAddress(address: string): string | undefined {
    return this.#table.appsByAddress.get(address);
  }

  machineAt(address: string): string | undefined {
    // Most clients are not machines, which is known at once.
    if (!this.#table.appsByAddress.has(address)) return undefined;
    return this.#table.all().find(({ row }) => row.address === address && row.remote === undefined)?.row.id;
  }

  connectedFrom(machineId: string): ClientEnd | undefined {
    const machine = this.#table.get(machineId);
    return machine?.policy.worker === true ? new WorkerConnection(this, machine) : undefined;
  }

  /** Returns the app that answers for the hostname. Undefined if there is none. */
  appFor(hostname: string): string | undefined {
    return this.#table.appFor(hostname);
  }

  /** Which apps each port for TCP connections belongs to. */
  tcpPorts(): ReadonlyMap<number, PortApps> {
    return portOwners(this.#table.all());
  }

  /** The ports that each app has at its own address. */
  ownPorts(): ReadonlyMap<string, ReadonlySet<number>> {
    return ownPortsByApp(this.#table.all());
  }

  /** Adopts a message of the coordinator. */
  receive(message: ToProxy): void {
    const touchesPorts = this.#touchesPorts(message);
    const newPorts = touchesPorts ? this.#newPorts(message) : [];
    this.#updater.apply(message);
    this.#moves.look();
    this.#options.onTable?.();
    if (message.kind === "table") [this.#toldClosed, this.#toldTaken] = ["{}", ""];
    if (touchesPorts) this.#options.onPorts?.((port) => message.kind === "table" || newPorts.includes(port));
    if (message.kind === "table") this.#traffic.connected();
  }

  /** Tells the coordinator which ports for TCP connections cannot be opened, with the reasons. */
  tellClosed(closed: ReadonlyMap<number, string>): void {
    const ports = Object.fromEntries(closed);
    const text = JSON.stringify(ports);
    if (text === this.#toldClosed) return;
    this.#toldClosed = text;
    this.#options.link.send({ kind: "closed_ports", ports });
  }

  /** Tells the coordinator at which ports this proxy takes connections of visitors. */
  tellTaken(ports: readonly number[]): void {
    const text = String(ports);
    if (text === this.#toldTaken) return;
    this.#toldTaken = text;
    this.#options.link.send({ kind: "taken_ports", ports });
  }

  /** The platform is out of reach. */
  disconnected(): void {
    this.#updater.disconnected();
    this.#traffic.disconnected();
  }

  /** Requests that a machine wakes, if it sleeps and requests may wake it. */
  wake(id: string): void {
    const machine = this.#table.get(id);
    if (machine === undefined || machine.refusal !== undefined) return;
    if (choose([machine]).wake === machine) this.onWanted(machine);
  }

  /** Whether there is a machine with this id and a service. */
  hasMachine(id: string): boolean {
    return this.#table.get(id) !== undefined;
  }

  /** Whether the machine with this id runs, and takes requests. */
  isReady(id: string): boolean {
    const machine = this.#table.get(id);
    return machine !== undefined && isReady(machine);
  }

  /** Whether an app of this name has a machine with a service. */
  hasApp(app: string): boolean {
    return this.#table.ofApp(app).all.length > 0;
  }

  /** How many requests wait, by app. */
  held(): Map<string, number> {
    return this.#queues.sizes();
  }

  /** Reports loads and traffic that would be reported in a moment. */
  flushReports(): void {
    this.#traffic.flush();
    this.#reporter.flush();
  }

  /** Refuses the requests that wait. */
  close(): void {
    this.#reporter.close();
    this.#traffic.close();
    this.#queues.rejectAll(new ProxyRefusal(503, "shutting_down", "The proxy is shutting down.", { retryAfterS: 1 }));
  }

  onLoadChanged({ id }: RoutedMachine): void {
    this.#reporter.changed(id);
  }

  get reach(): ReachHost {
    return this.#options.reach ?? unreachableHosts;
  }

  onForwarded(app: string, host: string, wake: LeaseStart): void {
    if (wake.kind !== "running") this.#options.onWake?.(app, wake);
    this.#options.onForwarded?.(host);
  }

  /** Resolves once the table says that the machine of a lease is elsewhere or gone, or after a moment. */
  async afterMove({ machineId, peer }: Pick<Lease, "machineId" | "peer">, signal: AbortSignal): Promise<void> {
    const host = peer?.host;
    await this.#moves.wait(() => {
      const machine = this.#table.get(machineId);
      return machine === undefined || machine.row.remote?.host !== host;
    }, signal);
  }

  onReleased({ row }: RoutedMachine): void {
    this.#queues.serve(row.app);
  }

  onMoved({ id }: RoutedMachine, bytesIn: number, bytesOut: number): void {
    this.#traffic.moved(id, bytesIn, bytesOut);
  }

  onWanted(machine: RoutedMachine, request?: Pick<RequestHead, "trace">): void {
    // What comes for a worker does not come again, so the platform has to hear of it.
    const drains = this.#table.draining && machine.row.remote === undefined && !machine.policy.worker;
    if (machine.wakeRequested || drains || this.#table.get(machine.id) !== machine) return;
    machine.wakeRequested = true;
    const trace = request?.trace?.wakeParent();
    this.#options.link.send({ kind: "wake", id: machine.id, ...(trace !== undefined && { trace }) });
  }

  /**
   * Returns a lease, or undefined if the request has to wait, after requesting the wake that it waits for. Throws if
   * waiting would be in vain.
   *
   * @param chosen the machine that the request asks for, if it does
   * @param since when the request began to wait, if it already waits, or came, if a machine failed it
   */
  #leaseOrWake(app: string, request: RequestHead, chosen?: ChosenMachine, since?: number): Lease | undefined {
    const machines = candidates(this.#table, app, request, chosen);
    const { send, wake, hope } = chooseOfHosts(machines);
    const refusal = wake?.refusal;
    if (wake !== undefined && refusal === undefined) this.onWanted(wake, request);
    if (send?.resting && send.row.remote === undefined) this.#recall(send);
    if (send !== undefined) return this.#lease(send, machines, request, since, chosen);
    // Nothing runs, and what would have to be woken is not started.
    const runs = machines.some(({ row }) => row.state === "running");
    if (this.#table.draining && wake !== undefined && !runs) throw drainingRefusal(app);
    if (refusal !== undefined && wake !== undefined && !runs) throw wakeRefusal(app, wake.id, refusal);
    if (hope) return undefined;
    const [machine] = machines;
    throw chosen?.only && machine ? chosenMachineRefusal(app, machine) : noMachineRefusal(app, machines);
  }

  /** Whether a message changes which ports there are: machines change often, and their ports seldom. */
  #touchesPorts(message: ToProxy): boolean {
    if (message.kind === "table") return true;
    if (message.kind === "gone") return (this.#table.get(message.id)?.row.tcp ?? []).length > 0;
    if (message.kind !== "machine") return false;
    const { id, tcp = [], tcpHandled = [], own = [] } = message.machine;
    const known = this.#table.get(id)?.row.tcp ?? [];
    const now = policyIn(message.machine) === null ? [] : [...tcp, ...tcpHandled, ...own];
    return !isDeepStrictEqual(known, now) || this.#newPorts(message).length > 0;
  }

  /** The ports of a machine that is new here, or has just been changed. */
  #newPorts(message: ToProxy): number[] {
    if (message.kind !== "machine") return [];
    const { id, state, tcp = [], tcpHandled = [], own = [] } = message.machine;
    const known = this.#table.get(id)?.row;
    const changed = known === undefined || (state === "updating" && known.state !== "updating");
    const before = changed ? [] : (known.tcp ?? []).map(({ port }) => port);
    return [...tcp, ...tcpHandled, ...own].map(({ port }) => port).filter((port) => !before.includes(port));
  }

  /** A burst needs a machine that rests. */
  #recall(machine: RoutedMachine): void {
    machine.row = { ...machine.row, resting: false };
    this.#options.link.send({ kind: "wake", id: machine.id });
  }

  #lease(
    machine: RoutedMachine,
    all: readonly RoutedMachine[],
    request: RequestHead,
    since?: number,
    chosen?: ChosenMachine,
  ): Lease {
    const { connection, tcpPort, tried } = request;
    const { onWake, connectTimeoutMs } = this.#options;
    const wake = machine.wakeSince(since);
    if (machine.row.remote !== undefined) {
      const port = chosen?.machine === machine ? chosen.port : undefined;
      // Once only: after a second refusal there might be no machine left to wait for.
      const hasOthers = tried.length === 0 && all.some((other) => other !== machine && hasRoom(other));
      return new PeerLease(this, machine, connection, { port, hasOthers });
    }
    if (wake.kind !== "running") onWake?.(machine.row.app, wake);
    const tcp = tcpPort === undefined ? undefined : tcpPortOf(machine.row.tcp, tcpPort);
    const port = tcp?.internal ?? (chosen?.machine === machine ? chosen.port : undefined);
    const quiet = tcp === undefined ? machine.policy.quiet : tcp.quiet === true;
    const proxyProtocol = tcp?.proxyProtocol;
    const http2 = machine.policy.h2Backend && !wantsWebSocket(request);
    const terms = { wake, connectTimeoutMs, port, quiet, proxyProtocol, http2 };
    return new MachineLease(this, machine, connection, terms);
  }
}

/** Chooses as {@link choose} does. A machine that its host refuses to start is no reason to refuse what another host can take. */
function chooseOfHosts(machines: readonly RoutedMachine[]): ReturnType<typeof choose<RoutedMachine>> {
  const choice = choose(machines);
  if (choice.send !== undefined || choice.wake?.refusal === undefined) return choice;
  const others = machines.filter(({ refusal }) => refusal === undefined);
  return others.some(({ row }) => row.remote !== undefined) ? choose(others) : choice;
}

/** Whether the machine could take a request at once. One at its hard limit might have no room for a long time. */
function hasRoom(machine: RoutedMachine): boolean {
  return isReady(machine) && machine.load < machine.hardLimit;
}

/** WebSockets go to the app over HTTP/1.1 in any case, as hardly an app takes them over HTTP/2. */
function wantsWebSocket({ fields }: RequestHead): boolean {
  return fields.some(({ key, value }) => key === "upgrade" && value.toLowerCase() === WEBSOCKET);
}
