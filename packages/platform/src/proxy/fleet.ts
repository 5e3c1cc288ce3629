/**
 * One proxy's view of all machines: gives requests to them, holds requests while machines wake, and tells the
 * control plane what is open. Decides nothing about sleeping but this: whether it needs a machine itself.
 */
import type { MachineState } from "../domain/machine.ts";
import { choose } from "./balance.ts";
import { type Director, type Lease, ProxyRefusal, type RequestHead, type Wake } from "./contract.ts";
import { Entry, FAILED_REST_MS } from "./entry.ts";
import { type QueueLimits, WaitingQueue } from "./queue.ts";
import { appOf } from "./routing.ts";
import { type ControlLink, type FromProxy, fromWire, type TableMachine, type ToProxy } from "./table.ts";

export interface FleetOptions extends QueueLimits {
  link: ControlLink;
  /** How long a machine's port may take to answer once the machine runs, in milliseconds. */
  connectTimeoutMs: number;
  /** A machine is about to sleep, or has left: its connections are of no use any more. */
  onLeft?(machineId: string): void;
  /** A request was given to a machine that was woken for it. */
  onWake?(app: string, wake: Wake): void;
  /** For tests. Milliseconds of a steady clock. */
  now?(): number;
}

/** Loads are told together: a busy proxy changes them many times in a moment. */
const REPORT_MS = 20;

export class Fleet implements Director {
  readonly #options: FleetOptions;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #apps = new Map<string, Entry[]>();
  readonly #queues = new Map<string, WaitingQueue<Lease>>();
  readonly #changed = new Set<string>();
  #hostnames: Readonly<Record<string, string>> = {};
  #suffixes: readonly string[] = [];
  #connectionsSurvive = false;
  #reporting: NodeJS.Timeout | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Requests that wait, by app. */
  held(): Map<string, number> {
    return new Map([...this.#queues].map(([app, queue]) => [app, queue.size]));
  }

  /** Open load by machine, of this proxy alone. */
  loads(): Record<string, number> {
    const open = [...this.#entries.values()].map((entry) => [entry.machine.id, entry.own] as const);
    return Object.fromEntries(open.filter(([, load]) => load > 0));
  }

  acquire(request: RequestHead, signal: () => AbortSignal): Lease | Promise<Lease> {
    const app = appOf(request.host, this.#hostnames, this.#suffixes);
    const entries = app === undefined ? undefined : this.#apps.get(app);
    if (app === undefined || entries === undefined) {
      const message = `No app answers for ${request.host} here: there is none of that name, or it has no machine with a service.`;
      throw new ProxyRefusal(404, "unknown_host", message);
    }
    const began = this.#now();
    // Nobody overtakes those who wait.
    const lease = this.#queues.get(app)?.size ? undefined : this.#tryLease(app, request);
    return lease ?? this.#wait(app, request, began, signal());
  }

  #wait(app: string, request: RequestHead, began: number, signal: AbortSignal): Promise<Lease> {
    const waiting = this.#queue(app).wait(began, signal, (since) => this.#tryLease(app, request, since));
    // The table may already hold what this request waits for.
    this.#dispatch(app);
    return waiting;
  }

  receive(message: ToProxy): void {
    switch (message.kind) {
      case "table":
        return this.#replace(message);
      case "machine":
        this.#update(message.machine);
        return this.#dispatch(message.machine.app);
      case "gone":
        return this.#remove(message.id);
      case "hostnames":
        this.#hostnames = message.hostnames;
        return;
      case "others":
        for (const [id, load] of Object.entries(message.loads)) this.#setOthers(id, load);
        return;
      case "drain":
        return this.#drain(message.id, message.question, message.idleMs);
      case "undrain":
        return this.#undrain(message.id);
      case "wake_failed":
        return this.#wakeFailed(message.id, message.message);
    }
  }

  /** The control plane is out of reach: nothing will be put to sleep, and wakes are asked for again when it is back. */
  disconnected(): void {
    for (const entry of this.#entries.values()) Object.assign(entry, { draining: false, others: 0 });
    for (const app of this.#apps.keys()) this.#dispatch(app);
  }

  close(): void {
    clearTimeout(this.#reporting);
    const error = new ProxyRefusal(503, "shutting_down", "The proxy is shutting down.", { retryAfterS: 1 });
    for (const queue of this.#queues.values()) queue.rejectAll(error);
  }

  /** A lease now, or undefined when the request has to wait; `since` when it waits already. Throws when waiting is in vain. */
  #tryLease(app: string, request: RequestHead, since?: number): Lease | undefined {
    const { tried } = request;
    const all = this.#apps.get(app) ?? [];
    const entries = tried.length === 0 ? all : all.filter(({ id }) => !tried.includes(id));
    const choice = choose(entries);
    if (choice.wake !== undefined) this.#wake(choice.wake);
    const entry = choice.send === undefined ? undefined : this.#entries.get(choice.send);
    if (entry !== undefined) return this.#lease(entry, request, since);
    if (choice.hope) return undefined;
    throw this.#hopeless(app, entries);
  }

  #lease(entry: Entry, { connection }: RequestHead, since: number | undefined): Lease {
    const { machine, open, policy } = entry;
    const { onWake, connectTimeoutMs } = this.#options;
    open.add(connection);
    this.#report(machine.id);
    let tunnel = false;
    const wake = entry.wakeSince(since);
    if (wake.kind !== "running") onWake?.(machine.app, wake);
    return {
      address: machine.address,
      port: policy.port,
      machineId: machine.id,
      appName: machine.app,
      wake,
      connectDeadline: performance.now() + connectTimeoutMs,
      upgraded: () => {
        tunnel = true;
        entry.tunnels += 1;
        this.#report(machine.id);
      },
      wanted: () => {
        if (entry.machine.state !== "running" && entry.policy.autostart) this.#wake(machine.id);
      },
      release: () => {
        if (tunnel) entry.tunnels -= 1;
        open.remove(connection, this.#now());
        this.#report(machine.id);
        this.#dispatch(machine.app);
      },
    };
  }

  #hopeless(app: string, entries: readonly Entry[]): ProxyRefusal {
    const unreachable = entries.find((entry) => !entry.reachable);
    if (unreachable !== undefined) return unreachableRefusal(app, unreachable);
    const crashing = entries.find((entry) => entry.crashing);
    if (crashing !== undefined) return crashRefusal(app, crashing);
    const failed = entries.find(({ machine }) => machine.state === "failed");
    if (failed !== undefined) {
      const { id, reason } = failed.machine;
      const message = `Machine ${id} of app ${app} could not be started: ${reason ?? "see its events"}.`;
      return new ProxyRefusal(503, "machine_failed", message, { retryAfterS: FAILED_REST_MS / 1000 });
    }
    if (entries.length === 0)
      return new ProxyRefusal(502, "no_machine_left", `No machine of app ${app} could be reached.`);
    const message = `No machine of app ${app} is running, and requests do not start them (auto_start_machines is off).`;
    return new ProxyRefusal(503, "not_running", message, { retryAfterS: 5 });
  }

  #dispatch(app: string): void {
    const queue = this.#queues.get(app);
    queue?.serve();
    if (queue?.size === 0) this.#queues.delete(app);
  }

  #queue(app: string): WaitingQueue<Lease> {
    const queue = this.#queues.get(app) ?? new WaitingQueue<Lease>(app, this.#options);
    this.#queues.set(app, queue);
    return queue;
  }

  #wake(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.asked) return;
    entry.asked = true;
    this.#options.link.send({ kind: "wake", id });
  }

  #wakeFailed(id: string, message: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.machine = { ...entry.machine, reason: message };
    Object.assign(entry, { asked: false, failedAt: this.#now() });
    this.#dispatch(entry.machine.app);
  }

  #replace({ machines, hostnames, suffixes, connectionsSurvive }: Extract<ToProxy, { kind: "table" }>): void {
    this.#connectionsSurvive = connectionsSurvive;
    this.#hostnames = hostnames;
    this.#suffixes = suffixes;
    const present = new Set(machines.map((machine) => machine.id));
    for (const id of [...this.#entries.keys()]) if (!present.has(id)) this.#remove(id);
    for (const machine of machines) this.#update(machine);
    // A control plane that is new, or back, knows nothing of what was asked before.
    for (const entry of this.#entries.values()) Object.assign(entry, { draining: false, asked: false, others: 0 });
    for (const id of this.#entries.keys()) this.#report(id);
    for (const app of this.#apps.keys()) this.#dispatch(app);
  }

  #update(machine: TableMachine): void {
    const now = this.#now();
    const before = this.#entries.get(machine.id);
    if (machine.policy === null) return this.#remove(machine.id);
    const policy = fromWire(machine.policy);
    const moved = before?.machine.state !== machine.state;
    const started = before !== undefined && before.machine.lastBoot?.at !== machine.lastBoot?.at;
    const entry = before ?? new Entry(machine, policy, this.#now);
    Object.assign(entry, { machine, policy, ...(started && { startedAt: now }) });
    if (moved) {
      Object.assign(entry, { draining: false, asked: false });
      if (machine.state === "running") {
        entry.open.touch(now);
      } else {
        this.#options.onLeft?.(machine.id);
      }
      if (machine.state === "failed" || machine.state === "stopped") entry.failedAt = now;
      if (this.#isNeeded(entry)) this.#wake(machine.id);
    }
    if (before !== undefined) return;
    this.#entries.set(machine.id, entry);
    this.#apps.set(machine.app, [...(this.#apps.get(machine.app) ?? []), entry]);
  }

  /** Somebody asked for its suspend while requests are open: they would wait for ever, or be cut. */
  #isNeeded({ machine, open, tunnels }: Entry): boolean {
    if (machine.state !== "suspending" && machine.state !== "suspended") return false;
    return open.requests > (this.#connectionsSurvive ? tunnels : 0);
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const { app } = entry.machine;
    this.#entries.delete(id);
    const left = this.#apps.get(app)?.filter((other) => other !== entry) ?? [];
    if (left.length > 0) this.#apps.set(app, left);
    else this.#apps.delete(app);
    this.#options.onLeft?.(id);
    this.#dispatch(app);
  }

  #setOthers(id: string, load: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.others = load;
    this.#dispatch(entry.machine.app);
  }

  #drain(id: string, question: number, idleMs: number): void {
    const entry = this.#entries.get(id);
    const agreed =
      entry === undefined ||
      (entry.open.requests === 0 &&
        (this.#queues.get(entry.machine.app)?.size ?? 0) === 0 &&
        entry.open.idleMs(this.#now()) >= idleMs);
    if (agreed && entry !== undefined) {
      entry.draining = true;
      this.#options.onLeft?.(id);
    }
    this.#options.link.send({ kind: "drained", question, agreed });
  }

  #undrain(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    Object.assign(entry, { draining: false, asked: false });
    this.#dispatch(entry.machine.app);
  }

  #report(id: string): void {
    this.#changed.add(id);
    this.#reporting ??= setTimeout(() => {
      this.#reporting = undefined;
      const loads = [...this.#changed].map((changed) => {
        const entry = this.#entries.get(changed);
        if (entry === undefined) return [changed, { load: 0, requests: 0 }];
        return [changed, { load: entry.own, requests: entry.open.requests - entry.tunnels }];
      });
      this.#changed.clear();
      this.#options.link.send({
        kind: "loads",
        loads: Object.fromEntries(loads) as Extract<FromProxy, { kind: "loads" }>["loads"],
      });
    }, REPORT_MS).unref();
  }
}

function crashRefusal(app: string, entry: Entry): ProxyRefusal {
  const { id, crash, state } = entry.machine;
  const retryAfterS = entry.retryAfterS();
  const message = `App ${app} crashes: on machine ${id}, ${crash?.reason}. ${nextStart(state, crash?.retryAt ?? null, retryAfterS)} Its logs say more: hibernaut logs --app ${app}`;
  return new ProxyRefusal(503, "app_crashed", message, { retryAfterS });
}

function nextStart(state: MachineState, retryAt: string | null, inS: number): string {
  if (retryAt === null) return "It is not started again by itself.";
  return state === "starting" ? "It is being started again." : `It is started again in ${inS} s.`;
}

function unreachableRefusal(app: string, { machine: { id, unreachable } }: Entry): ProxyRefusal {
  const message = `App ${app} cannot be reached: machine ${id} runs, but ${unreachable}. See: hibernaut machine status ${id} --app ${app}`;
  return new ProxyRefusal(502, "upstream_unreachable", message);
}
