/**
 * The control plane's side of all proxies: tells them what there is, starts what they ask for, adds up what they
 * have open, and puts to sleep what nobody needs.
 */
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../lib/text.ts";
import type { Commands } from "../machines/resources/commands.ts";
import type { Hostnames } from "../machines/resources/hostnames.ts";
import type { Machines } from "../machines/resources/machines.ts";
import { isKnownToCrash } from "../machines/restart.ts";
import type { MachineRecord } from "../domain/machine.ts";
import { type IdleMachine, planSleep } from "./idle.ts";
import { type Policy, policyOf } from "./policy.ts";
import { type FromProxy, type TableMachine, type ToProxy, toWire } from "./table.ts";

export interface HubOptions {
  machines: Pick<Machines, "all" | "onChange" | "start" | "sleep">;
  hostnames: Pick<Hostnames, "owners">;
  commands: Pick<Commands, "count">;
  /** Hostnames end with one of these, `<app>.<suffix>`. */
  suffixes: readonly string[];
  /** How often machines are looked at, in milliseconds. Ones that become idle in between are looked at then. */
  idleCheckIntervalMs: number;
  /** Whether connections to a machine outlive its sleep. */
  connectionsSurvive: boolean;
  /** Whether a machine's checks let it take requests; without it every machine may. */
  isHealthy?(id: string): boolean;
  log: { warn(fields: Record<string, unknown>, message: string): void };
  /** For tests. Milliseconds of a steady clock. */
  now?(): number;
}

/** A proxy that is connected. */
export interface ProxyConnection {
  receive(message: FromProxy): void;
  close(): void;
}

interface Proxy {
  send(message: ToProxy): void;
  loads: Map<string, { load: number; requests: number }>;
}

interface Watched {
  record: MachineRecord;
  policy: Policy | undefined;
  /** Since when no proxy has anything open on it. */
  idleSince: number;
  /** A sleep is being prepared; false as soon as somebody wants the machine. */
  draining: boolean;
}

/** A proxy that does not answer in this time is taken to need the machine. */
const ANSWER_MS = 1000;
/** A little more than proxies take to report (REPORT_MS in fleet.ts). */
const REPORT_MS = 30;
/** Between two looks: a machine that is needed all the same is not asked about again at once. */
const SHORTEST_PAUSE_MS = 200;
/** A proxy that lost its connection has so long to come back and tell what it has open. */
const RECONNECT_MS = 5000;

export class ProxyHub {
  readonly #options: HubOptions;
  readonly #now: () => number;
  readonly #proxies = new Set<Proxy>();
  readonly #watched = new Map<string, Watched>();
  readonly #questions = new Map<number, (agreed: boolean) => void>();
  readonly #unsubscribe: () => void;
  #lastQuestion = 0;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;
  #closed = false;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    const { machines } = options;
    for (const { record } of machines.all()) this.#watch(record);
    // Proxies may be there already, with requests open on machines that ran on.
    for (const watched of this.#watched.values()) watched.idleSince += RECONNECT_MS;
    this.#unsubscribe = machines.onChange((record) => this.#changed(record));
    this.#plan();
  }

  /** Load of a machine over all proxies. */
  load(id: string): number {
    return sum([...this.#proxies].map((proxy) => proxy.loads.get(id)?.load ?? 0));
  }

  /** Settles when no request is under way on the machine, upgraded connections aside, or after the time is over. */
  async finished(id: string, timeoutMs: number): Promise<void> {
    const done = () => [...this.#proxies].every((proxy) => (proxy.loads.get(id)?.requests ?? 0) === 0);
    const end = this.#now() + timeoutMs;
    // Proxies report within a moment what they began just before the machine left the rotation.
    await delay(REPORT_MS);
    while (!done() && this.#now() < end) await delay(REPORT_MS);
  }

  /** A machine's health changed. */
  healthChanged(id: string): void {
    const watched = this.#watched.get(id);
    if (watched !== undefined) this.#tell({ kind: "machine", machine: this.#tableMachine(watched) });
  }

  connect(send: (message: ToProxy) => void): ProxyConnection {
    const proxy: Proxy = { send, loads: new Map() };
    this.#proxies.add(proxy);
    const { connectionsSurvive } = this.#options;
    const machines = [...this.#watched.values()].map((watched) => this.#tableMachine(watched));
    send({
      kind: "table",
      machines,
      hostnames: this.#options.hostnames.owners(),
      suffixes: [...this.#options.suffixes],
      connectionsSurvive,
    });
    return {
      receive: (message) => this.#receive(proxy, message),
      close: () => {
        this.#proxies.delete(proxy);
        for (const id of proxy.loads.keys()) this.#loadChanged(id, RECONNECT_MS);
      },
    };
  }

  /** Names of hosts changed. */
  hostnamesChanged(): void {
    const hostnames = this.#options.hostnames.owners();
    for (const { send } of this.#proxies) send({ kind: "hostnames", hostnames });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#unsubscribe();
    await this.#checking;
  }

  /** Looks now at which machines may sleep. Settles when those were told to. */
  async check(): Promise<void> {
    // Without a proxy nobody knows what is open.
    if (this.#proxies.size === 0) return;
    const apps = Map.groupBy(this.#watched.values(), ({ record }) => record.app);
    for (const watched of apps.values()) {
      const running = watched.filter(({ record, policy }) => record.state === "running" && policy !== undefined);
      const sleepers = planSleep(running.map((machine) => this.#idleMachine(machine)));
      await Promise.all(sleepers.map((id) => this.#putToSleep(id)));
    }
  }

  #receive(proxy: Proxy, message: FromProxy): void {
    if (message.kind === "drained") this.#questions.get(message.question)?.(message.agreed);
    if (message.kind === "wake") this.#wake(proxy, message.id);
    if (message.kind === "loads") {
      for (const [id, load] of Object.entries(message.loads)) {
        if (load.load > 0 || load.requests > 0) proxy.loads.set(id, load);
        else proxy.loads.delete(id);
        this.#loadChanged(id);
      }
    }
  }

  #wake(proxy: Proxy, id: string): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) return proxy.send({ kind: "gone", id });
    if (watched.draining && watched.record.state === "running") {
      watched.draining = false;
      return;
    }
    try {
      this.#options.machines.start(watched.record.app, id, { by: "proxy" });
    } catch (error) {
      proxy.send({ kind: "wake_failed", id, message: messageOf(error) });
    }
  }

  #loadChanged(id: string, graceMs = 0): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) return;
    watched.idleSince = this.#now() + graceMs;
    const total = this.load(id);
    if (this.#proxies.size > 1)
      for (const proxy of this.#proxies)
        proxy.send({ kind: "others", loads: { [id]: total - (proxy.loads.get(id)?.load ?? 0) } });
    this.#plan();
  }

  #changed(record: MachineRecord): void {
    if (record.state === "destroyed") {
      this.#watched.delete(record.id);
      return this.#tell({ kind: "gone", id: record.id });
    }
    const watched = this.#watch(record);
    this.#tell({ kind: "machine", machine: this.#tableMachine(watched) });
    // One machine less, or one lease less, may make others superfluous.
    this.#plan(SHORTEST_PAUSE_MS);
  }

  #watch(record: MachineRecord): Watched {
    const before = this.#watched.get(record.id);
    const watched = before ?? { record, policy: undefined, idleSince: this.#now(), draining: false };
    // Whoever started it has not used it yet.
    if (record.state === "running" && before?.record.state !== "running") watched.idleSince = this.#now();
    Object.assign(watched, { record, policy: policyOf(record.config) });
    this.#watched.set(record.id, watched);
    return watched;
  }

  #tableMachine({ record, policy }: Watched): TableMachine {
    return {
      id: record.id,
      app: record.app,
      state: record.state,
      address: record.address,
      lastBoot: record.lastBoot && { kind: record.lastBoot.kind, at: record.lastBoot.at },
      healthy: this.#options.isHealthy?.(record.id) ?? true,
      reason: record.stateReason,
      crash:
        record.crash && isKnownToCrash(record.crash)
          ? { reason: record.crash.reason, retryAt: record.crash.retry_at }
          : null,
      unreachable: record.state === "running" ? (record.unreachable ?? null) : null,
      policy: policy === undefined ? null : toWire(policy),
    };
  }

  #tell(message: ToProxy): void {
    for (const { send } of this.#proxies) send(message);
  }

  #idleMachine(watched: Watched): IdleMachine {
    const { record, policy } = watched;
    const load = this.load(record.id);
    return {
      id: record.id,
      load,
      idleMs: load > 0 ? 0 : this.#now() - watched.idleSince,
      keptAwake: awakeForMs(record) > 0 || this.#options.commands.count(record.id) > 0,
      policy: policy as Policy,
    };
  }

  /** Asks every proxy to let go of the machine, and puts it to sleep when all agree. */
  async #putToSleep(id: string): Promise<void> {
    const watched = this.#watched.get(id);
    if (watched?.policy === undefined || watched.draining) return;
    const { idleTimeoutMs, autostop } = watched.policy;
    watched.draining = true;
    const answers = await Promise.all([...this.#proxies].map((proxy) => this.#ask(proxy, id, idleTimeoutMs)));
    const wanted = !watched.draining || watched.record.state !== "running" || this.#idleMachine(watched).keptAwake;
    watched.draining = false;
    if (this.#closed || wanted || autostop === "off" || !answers.every(Boolean)) {
      watched.idleSince = Math.max(watched.idleSince, this.#now() - idleTimeoutMs + SHORTEST_PAUSE_MS);
      return this.#tell({ kind: "undrain", id });
    }
    try {
      this.#options.machines.sleep(watched.record.app, id, autostop, {
        by: "proxy",
        idle_ms: Math.round(this.#now() - watched.idleSince),
      });
    } catch (error) {
      this.#options.log.warn({ machine: id, reason: messageOf(error) }, "an idle machine could not be put to sleep");
      watched.idleSince = this.#now();
      this.#tell({ kind: "undrain", id });
    }
  }

  #ask(proxy: Proxy, id: string, idleMs: number): Promise<boolean> {
    const question = (this.#lastQuestion += 1);
    return new Promise((resolve) => {
      const answer = (agreed: boolean) => {
        clearTimeout(timer);
        this.#questions.delete(question);
        resolve(agreed);
      };
      const timer = setTimeout(() => answer(false), ANSWER_MS);
      this.#questions.set(question, answer);
      proxy.send({ kind: "drain", id, question, idleMs });
    });
  }

  /** Sets the timer for the next look: at the interval, when the next machine becomes idle, or at most after `mostMs`. */
  #plan(mostMs = this.#options.idleCheckIntervalMs): void {
    if (this.#closed || this.#checking !== undefined) return;
    clearTimeout(this.#timer);
    const now = this.#now();
    const deadlines = [...this.#watched.values()].map((watched) => this.#idleDeadline(watched, now));
    // Those that are over were looked at, and something else kept the machine awake.
    const wait = Math.min(mostMs, ...deadlines.filter((deadline) => deadline > 0));
    this.#timer = setTimeout(() => this.#look(), Math.max(SHORTEST_PAUSE_MS, wait)).unref();
  }

  #look(): void {
    this.#checking = this.check()
      .catch((error: unknown) => this.#options.log.warn({ reason: messageOf(error) }, "the idle check failed"))
      .finally(() => {
        this.#checking = undefined;
        this.#plan();
      });
  }

  /** Milliseconds until the machine may become idle; Infinity when it may not at all. */
  #idleDeadline(watched: Watched, now: number): number {
    const { record, policy, idleSince } = watched;
    if (record.state !== "running" || policy === undefined || policy.autostop === "off")
      return Number.POSITIVE_INFINITY;
    if (this.load(record.id) > 0) return Number.POSITIVE_INFINITY;
    return Math.max(idleSince + policy.idleTimeoutMs - now, awakeForMs(record));
  }
}

function awakeForMs({ keepAwake }: MachineRecord): number {
  return keepAwake ? Math.max(0, Date.parse(keepAwake.until) - Date.now()) : 0;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
