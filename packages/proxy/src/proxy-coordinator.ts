/**
 * The platform's side of all proxies: tells them which machines there are, wakes what they ask for, adds up what they
 * have open, and lets machines sleep that no proxy needs.
 */
import type { Challenges } from "@hibernaut/certs";
import type { AppNetwork } from "@hibernaut/domain/app-network";
import type { Activity } from "@hibernaut/domain/awake";
import { isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isWorker } from "@hibernaut/domain/worker";
import { messageOf } from "@hibernaut/lib/text";
import { type Commands, type Hostnames, isPrewarming, type Machines } from "@hibernaut/machines";
import type { Traffic } from "@hibernaut/store";
import type { WakeTraces } from "@hibernaut/telemetry";
import type { ConnectedProxies, ConnectedProxy } from "./connected-proxies.ts";
import { type CoordinatedMachine, tableMachineOf, withRecord } from "./coordinated-machine.ts";
import type { RemoteMachines } from "./hosts/remote-machines.ts";
import type { FromProxy, TableMachine, ToProxy } from "./messages.ts";
import { RoomWaits } from "./room-waits.ts";
import { SHORTEST_PAUSE_MS, SleepScheduler } from "./sleep-scheduler.ts";
import { tcpPortsOf } from "./tcp/ports.ts";

interface CoordinatorOptions {
  machines: Pick<Machines, "all" | "subscribe" | "start" | "sleep" | "disconnect">;
  hostnames: Pick<Hostnames, "owners" | "reserved">;
  commands: Pick<Commands, "count">;
  /** Where proxies are added when they connect. */
  proxies: ConnectedProxies;
  /** Hostnames end with one of these: `<app>.<suffix>`. */
  suffixes: readonly string[];
  /** The host's address in the machines' network, if they have one. */
  gateway?: string | undefined;
  /** How often to look for idle machines, in milliseconds. Machines that become idle in between are looked at then. */
  idleCheckIntervalMs: number;
  /** Returns the network that an app shares, which never changes. By default, apps share none. */
  networkOf?(app: string): AppNetwork | undefined;
  /** Whether connections to a machine outlive its sleep. */
  connectionsSurvive: boolean;
  /** Whether the platform starts no machines at the moment. By default, it does. */
  isDraining?(): boolean;
  /** The answers to open challenges of certificate authorities. By default, there are none. */
  challenges?: Pick<Challenges, "all" | "certificates">;
  /** Told what proxies have forwarded. */
  onTraffic?(machineId: string, traffic: Traffic): void;
  /**
   * Told the ports at which proxies take connections of visitors, when one says that its own have changed. Not when one is
   * gone: it may only have lost its connection, and serve.
   */
  onTaken?: ((ports: readonly number[]) => void) | undefined;
  /** Is told which wakes belong to traced requests. By default, nobody is. */
  traces?: Pick<WakeTraces, "asked" | "refused"> | undefined;
  /** The machines of other hosts. Absent on a host that is in no cluster. */
  remote?: RemoteMachines | undefined;
  /** Whether a machine's checks let it take requests. By default, every machine may. */
  isHealthy?(id: string): boolean;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  /** For tests: milliseconds of a steady clock. */
  now?(): number;
}

/** The coordinator's end of a connection to a proxy. */
interface ProxyConnection {
  receive(message: FromProxy): void;
  close(): void;
}

/** How long a proxy that lost its connection may take to return and report what it has open, in milliseconds. */
const RECONNECT_MS = 5000;

export class ProxyCoordinator {
  readonly #options: CoordinatorOptions;
  readonly #now: () => number;
  readonly #proxies: ConnectedProxies;
  readonly #machines = new Map<string, CoordinatedMachine>();
  readonly #sleep: SleepScheduler;
  readonly #roomWaits: RoomWaits;
  readonly #unsubscribe: () => void;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#proxies = options.proxies;
    this.#now = options.now ?? (() => performance.now());
    const { machines, commands, idleCheckIntervalMs, log } = options;
    this.#sleep = new SleepScheduler({
      machines,
      commands,
      known: this.#machines,
      proxies: this.#proxies,
      intervalMs: idleCheckIntervalMs,
      isDraining: () => this.#options.isDraining?.() ?? false,
      isUsable: ({ record }) => (record.unreachable ?? null) === null && this.#isHealthy(record.id),
      tell: (machine) => this.#tell(machine),
      log,
      now: this.#now,
    });
    this.#roomWaits = new RoomWaits({
      start: (id) => this.#start(id),
      states: () => [...this.#machines.values()].map(({ record }) => record.state),
      refuse: (waiting, id, error) => this.#refuseWake(waiting, id, error),
      now: this.#now,
    });
    this.#proxies.onHeldBack = (id) => {
      const machine = this.#machines.get(id);
      if (machine !== undefined) this.#tell(machine);
    };
    for (const { record } of machines.all()) this.#adopt(record);
    // Proxies may already be there, with requests open on machines that kept running.
    for (const machine of this.#machines.values()) machine.idleSince += RECONNECT_MS;
    const unsubscribe = machines.subscribe("routing", (record) => this.#changed(record));
    const unsubscribeRemote = options.remote?.subscribe((id, row) => this.#remoteChanged(id, row));
    this.#unsubscribe = () => {
      unsubscribe();
      unsubscribeRemote?.();
    };
    this.#sleep.plan();
  }

  /** Why a machine does not sleep. Undefined unless it is running. */
  activity(id: string): Activity | undefined {
    const machine = this.#machines.get(id);
    return machine?.record.state === "running" ? this.#sleep.activity(machine) : undefined;
  }

  /** The app's ports for TCP connections that cannot be opened, each with the reason. */
  closedPorts(app: string): { port: number; reason: string }[] {
    const machines = [...this.#machines.values()].filter(({ record }) => record.app === app);
    const ports = new Set(machines.flatMap(({ record }) => tcpPortsOf(record.config).map(({ port }) => port)));
    return [...ports].flatMap((port) => {
      const reason = this.#proxies.whyClosed(port);
      return reason === undefined ? [] : [{ port, reason }];
    });
  }

  /** Looks now which machines may sleep. Resolves once those have been told to. */
  check(): Promise<void> {
    return this.#sleep.check();
  }

  /** A machine's health changed. */
  healthChanged(id: string): void {
    const machine = this.#machines.get(id);
    if (machine !== undefined) this.#tell(machine);
  }

  /** Hostnames were added or removed. */
  hostnamesChanged(): void {
    const { hostnames } = this.#options;
    this.#proxies.tellAll({ kind: "hostnames", hostnames: hostnames.owners(), reserved: hostnames.reserved() });
  }

  /** Challenges were opened or closed. Resolves once all proxies know. */
  challengesChanged(): Promise<void> {
    return this.#proxies.tellChallenges(this.#openChallenges());
  }

  #openChallenges() {
    const { challenges } = this.#options;
    return { challenges: challenges?.all() ?? {}, challengeCertificates: challenges?.certificates() ?? {} };
  }

  /** A drain began or ended. */
  drainChanged(draining: boolean): void {
    this.#proxies.tellAll({ kind: "draining", draining });
  }

  /**
   * Connects a proxy, which is sent the whole table first.
   *
   * @param everywhere whether it is told about the machines of other hosts
   * @param forVisitors whether visitors reach it
   */
  connect(
    send: (message: ToProxy) => void,
    { everywhere = true, forVisitors = true }: { everywhere?: boolean; forVisitors?: boolean } = {},
  ): ProxyConnection {
    const { hostnames, suffixes, connectionsSurvive, gateway, remote } = this.#options;
    const proxy = this.#proxies.add(send, { everywhere, forVisitors });
    // Workers that sleep have no connections there yet, nor ever again without being woken.
    if (this.#proxies.hasOneInside) this.#sleep.plan(SHORTEST_PAUSE_MS);
    const own = [...this.#machines.values()].filter(({ record }) => remote?.has(record.id) !== true);
    send({
      kind: "table",
      machines: [
        ...own.map((machine) => this.#tableMachine(machine)),
        ...(everywhere && remote !== undefined ? remote.all() : []),
      ],
      hostnames: hostnames.owners(),
      reserved: hostnames.reserved(),
      suffixes: [...suffixes],
      ...(gateway !== undefined && { gateway }),
      connectionsSurvive,
      draining: this.#options.isDraining?.() ?? false,
      ...this.#openChallenges(),
    });
    return {
      receive: (message) => this.#receive(proxy, message),
      close: () => {
        this.#proxies.remove(proxy);
        for (const id of proxy.loads.keys()) this.#loadChanged(id, RECONNECT_MS);
      },
    };
  }

  /** Puts no machine to sleep any more, and wakes none for being asleep in vain: proxies are about to leave. */
  rest(): Promise<void> {
    return this.#sleep.close();
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    this.#roomWaits.close();
    await this.#sleep.close();
  }

  #receive(proxy: ConnectedProxy, message: FromProxy): void {
    switch (message.kind) {
      case "drained":
        return this.#proxies.answered(message.question, message.agreed);
      case "noted":
        return this.#proxies.answered(message.question, true);
      case "closed_ports":
        proxy.closedPorts = message.ports;
        return;
      case "taken_ports":
        proxy.takenPorts = message.ports;
        this.#options.onTaken?.([...this.#proxies.takenPorts]);
        return;
      case "wake":
        return this.#wake(proxy, message);
      case "traffic":
        for (const [id, moved] of Object.entries(message.moved)) this.#options.onTraffic?.(id, moved);
        return;
      case "loads":
        for (const [id, load] of Object.entries(message.loads)) {
          this.#proxies.setLoad(proxy, id, load);
          this.#loadChanged(id);
        }
    }
  }

  /** Wakes a machine for a request. If the machine is only being drained, that is cancelled instead. */
  #wake(proxy: ConnectedProxy, { id, trace }: { id: string; trace?: string }): void {
    const { remote } = this.#options;
    if (remote?.has(id) === true) return remote.wake(id);
    const machine = this.#machines.get(id);
    // One that is about to move here is not known yet.
    if (machine === undefined) return remote?.isOwn(id) === true ? undefined : proxy.send({ kind: "gone", id });
    const taken = isPrewarming(machine.record);
    if (machine.record.state === "running" && !taken && (machine.draining || machine.resting)) {
      machine.draining = false;
      return this.#sleep.rotation.recall(machine);
    }
    if (machine.policy?.worker === true) {
      if (machine.record.state !== "running") machine.calls.since ??= this.#now();
      if (machine.record.cordoned === true) {
        machine.calls.missed = true;
        return;
      }
    }
    if (trace !== undefined) this.#options.traces?.asked(id, trace);
    try {
      this.#start(id);
      this.#wakeNeeded(machine.record.app);
    } catch (error) {
      if (isHibernautError(error, "host_full")) this.#roomWaits.add(proxy, id, error);
      else this.#refuseWake([proxy], id, error);
    }
  }

  #start(id: string): void {
    const app = this.#machines.get(id)?.record.app;
    if (app !== undefined) this.#options.machines.start(app, id, { by: "proxy" });
  }

  /** What an app is known to need wakes next to it: it would ask for one after the other. */
  #wakeNeeded(app: string): void {
    const { networkOf } = this.#options;
    const network = networkOf?.(app);
    for (const needed of network?.wakes ?? []) {
      if (needed === app || networkOf?.(needed)?.name !== network?.name) continue;
      const id = this.#oneAsleep(needed);
      if (id === undefined) continue;
      try {
        this.#start(id);
      } catch (error) {
        // The connection that needs it asks again, and is told.
        this.#options.log.warn(
          { app, needed, reason: messageOf(error) },
          "an app that another needs was not woken with it",
        );
      }
    }
  }

  /** A machine of the app that requests may wake, if none is up or on its way. */
  #oneAsleep(app: string): string | undefined {
    const all = [...this.#machines.values()].filter(
      ({ record, policy }) => record.app === app && policy?.autostart === true && record.cordoned !== true,
    );
    const serving = all.filter(({ policy }) => policy?.worker !== true);
    const own = serving.length > 0 ? serving : all;
    const [suspended, stopped] = (["suspended", "stopped"] as const).map((state) =>
      own.find(({ record }) => record.state === state && record.crash === null),
    );
    const isUp = own.some(({ record }) => !["suspended", "stopped", "failed", "created"].includes(record.state));
    return isUp ? undefined : (suspended ?? stopped)?.record.id;
  }

  #refuseWake(proxies: Iterable<ConnectedProxy>, id: string, error: unknown): void {
    this.#options.traces?.refused(id);
    const machine = this.#machines.get(id);
    // A request asks again. What came for a worker does not come again.
    if (machine?.policy?.worker === true) machine.calls.missed = true;
    const full = isHibernautError(error, "host_full") && { full: { retryAfterS: Number(error.details.retry_after_s) } };
    const overQuota = isHibernautError(error) && error.details.quota !== undefined && { overQuota: true };
    for (const proxy of proxies)
      proxy.send({ kind: "wake_failed", id, message: messageOf(error), ...full, ...overQuota });
  }

  #loadChanged(id: string, graceMs = 0): void {
    const machine = this.#machines.get(id);
    if (machine === undefined) return;
    machine.idleSince = this.#now() + graceMs;
    this.#proxies.tellOthers(id);
    this.#sleep.loadChanged(machine);
  }

  #changed(record: MachineRecord): void {
    if (record.state === "destroyed") {
      this.#machines.delete(record.id);
      return this.#tellGone(record.id);
    }
    const before = this.#machines.get(record.id)?.record.state;
    const machine = this.#adopt(record);
    if (record.state === "running" && before !== "running") this.#sleep.rotation.cameUp(machine);
    this.#tell(machine);
    // One machine less, or one keep-awake lease less, may make others superfluous.
    this.#sleep.plan(SHORTEST_PAUSE_MS);
  }

  #adopt(record: MachineRecord): CoordinatedMachine {
    const { connectionsSurvive, networkOf } = this.#options;
    const canWait = connectionsSurvive && isWorker(record.config) && networkOf?.(record.app) !== undefined;
    const machine = withRecord(this.#machines.get(record.id), record, { now: this.#now(), canWait });
    this.#machines.set(record.id, machine);
    return machine;
  }

  #tell(machine: CoordinatedMachine): void {
    // What this host's store says about another host's machine is void.
    if (this.#options.remote?.has(machine.record.id) === true) return;
    this.#proxies.tellAll({ kind: "machine", machine: this.#tableMachine(machine) });
  }

  /** The machine is no longer on this host. Another one may have it. */
  #tellGone(id: string): void {
    const elsewhere = this.#options.remote?.has(id) === true;
    if (elsewhere) this.#proxies.tellThose(false, { kind: "gone", id });
    else this.#proxies.tellAll({ kind: "gone", id });
  }

  /** Another host's machine changed, or is no longer another host's. */
  #remoteChanged(id: string, row: TableMachine | undefined): void {
    if (row !== undefined) {
      this.#proxies.tellThose(true, { kind: "machine", machine: row });
      if (this.#machines.has(id)) this.#proxies.tellThose(false, { kind: "gone", id });
      return;
    }
    const machine = this.#machines.get(id);
    if (machine !== undefined) return this.#tell(machine);
    // It has moved here, and the record follows in a moment.
    if (this.#options.remote?.isOwn(id) !== true) this.#proxies.tellThose(true, { kind: "gone", id });
  }

  #tableMachine(machine: CoordinatedMachine): TableMachine {
    const row = tableMachineOf(machine, {
      healthy: this.#isHealthy(machine.record.id),
      shares: this.#options.networkOf?.(machine.record.app) !== undefined,
    });
    // To proxies it is suspended already: requests that are open continue, and others wait.
    if (row.state === "running" && this.#proxies.isHeldBack(row.id)) row.state = "suspending";
    return row;
  }

  #isHealthy(id: string): boolean {
    return this.#options.isHealthy?.(id) ?? true;
  }
}
