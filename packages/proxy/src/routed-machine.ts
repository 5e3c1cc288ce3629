/** What one proxy knows about one machine. */
import type { MachineState } from "@hibernaut/domain/machine";
import type { Candidate } from "./balance.ts";
import { type LeaseStart, RUNNING } from "./contract.ts";
import { loadStep } from "./hosts/load-steps.ts";
import type { TableMachine, ToProxy } from "./messages.ts";
import { OpenRequests } from "./open-requests.ts";
import type { ServicePolicy } from "./service-policy.ts";

/** How long a machine that failed, or whose app crashed for good, rests before a request starts it again. */
export const FAILED_REST_MS = 10_000;

/** How long the platform is not asked again to wake a machine after it refused to, in milliseconds. */
const REFUSED_REST_MS = 1_000;

/** Why the platform did not start a machine. */
export type WakeRefusal = Omit<Extract<ToProxy, { kind: "wake_failed" }>, "kind" | "id">;

/** States in which an app that is known to crash is between two attempts of its restart policy, or in one. */
const CRASH_LOOP: ReadonlySet<MachineState> = new Set(["starting", "stopping", "restarting"]);

/** A machine that requests can be given to. Used as a {@link Candidate} directly, as every request looks at it. */
export class RoutedMachine implements Candidate {
  row: TableMachine;
  policy: ServicePolicy;
  /** What this proxy has open on the machine. */
  readonly open: OpenRequests;
  /** The load that other proxies put on the machine. */
  others = 0;
  /** See {@link Candidate}. A field, as every request reads it. */
  distance = 0;
  /** How many of the open requests are upgraded connections. */
  tunnels = 0;
  /** How many connections to apps of its network a worker has, silent ones too. */
  waits = 0;
  /** What has to be done once the machine runs. */
  readonly onceAwake = new Set<() => void>();
  /** The machine may be put to sleep at any moment and takes no more requests. */
  draining = false;
  /** A wake was requested, and nothing has changed since. */
  wakeRequested = false;
  /** When the proxy last heard of a start. A suspend that was cancelled is not a start. */
  startedAt = Number.NEGATIVE_INFINITY;
  failedAt = Number.NEGATIVE_INFINITY;
  /** When a visitor last got the wake page in its place. */
  pageAt = Number.NEGATIVE_INFINITY;
  #refusal: (WakeRefusal & { at: number }) | undefined;
  readonly #now: () => number;

  constructor(row: TableMachine, policy: ServicePolicy, now: () => number) {
    this.row = row;
    this.policy = policy;
    this.open = new OpenRequests(now());
    this.#now = now;
    this.#adoptHost();
    this.#enterState();
  }

  /** Adopts what the coordinator says about the machine. Returns whether its state changed. */
  update(row: TableMachine, policy: ServicePolicy): boolean {
    const before = this.row;
    this.row = row;
    this.policy = policy;
    this.#adoptHost();
    if (before.lastBoot?.at !== row.lastBoot?.at) this.startedAt = this.#now();
    if (before.state === row.state) return false;
    this.#enterState();
    return true;
  }

  /** A host says what is open on its machines in steps, so a smaller difference does not count. */
  #adoptHost(): void {
    this.distance = this.row.remote === undefined ? 0 : loadStep(this.policy.softLimit);
  }

  #enterState(): void {
    const { state } = this.row;
    this.draining = false;
    this.wakeRequested = false;
    this.#refusal = undefined;
    if (state === "running") this.open.touch(this.#now());
    if (state === "running" && this.onceAwake.size > 0) {
      const all = [...this.onceAwake];
      this.onceAwake.clear();
      for (const act of all) act();
    }
    if (state === "failed" || state === "stopped") this.failedAt = this.#now();
  }

  /** The platform refused to wake the machine: requests are told so, and do not ask again for a moment. */
  refuse(refusal: WakeRefusal): void {
    this.#refusal = { ...refusal, at: this.#now() };
    this.wakeRequested = false;
  }

  /** Why the machine cannot be woken at the moment. */
  get refusal(): WakeRefusal | undefined {
    if (this.#refusal !== undefined && this.#now() - this.#refusal.at >= REFUSED_REST_MS) this.#refusal = undefined;
    return this.#refusal;
  }

  get id(): string {
    return this.row.id;
  }

  /** A machine that is being drained is already on its way to sleep: only a wake turns it around. */
  get state(): MachineState {
    const { state } = this.row;
    if (state === "running" && this.draining) return "suspending";
    return state === "failed" && this.#restedMs >= FAILED_REST_MS ? "stopped" : state;
  }

  get reachable(): boolean {
    return this.row.unreachable === null;
  }

  get resting(): boolean {
    return this.row.resting;
  }

  get crashing(): boolean {
    const { crash, state } = this.row;
    if (crash === null) return false;
    return CRASH_LOOP.has(state) || (state === "stopped" && this.#restedMs < FAILED_REST_MS);
  }

  /** Returns after how many seconds it is worth trying a machine again that failed or crashed. */
  retryAfterS(wallMs = Date.now()): number {
    const retryAt = this.row.crash?.retryAt ?? null;
    const leftMs = retryAt === null ? FAILED_REST_MS - this.#restedMs : Date.parse(retryAt) - wallMs;
    return Math.max(1, Math.ceil(leftMs / 1000));
  }

  /** Whether a start that a visitor saw the wake page for came to nothing a moment ago, or did not last. */
  get endedSincePage(): boolean {
    return this.failedAt > this.pageAt && this.pageAt > Number.NEGATIVE_INFINITY && this.#restedMs < FAILED_REST_MS;
  }

  /** Milliseconds since the machine failed. */
  get #restedMs(): number {
    return this.#now() - this.failedAt;
  }

  get load(): number {
    const { remote } = this.row;
    // What another host says includes what it gets from here, except for the last moment.
    return remote === undefined ? this.ownLoad + this.others : Math.max(this.ownLoad, remote.load);
  }

  /** The load that this proxy puts on the machine. */
  get ownLoad(): number {
    return this.policy.unit === "connections" ? this.open.connections : this.open.requests;
  }

  get softLimit(): number {
    return this.policy.softLimit;
  }

  get hardLimit(): number {
    return this.policy.hardLimit;
  }

  get autostart(): boolean {
    return this.policy.autostart;
  }

  get healthy(): boolean {
    return this.row.healthy;
  }

  /** Returns what woke the machine for a request that has waited since then. A start in the meantime was for it. */
  wakeSince(since: number | undefined): LeaseStart {
    const { lastBoot } = this.row;
    if (since === undefined || this.startedAt < since || lastBoot === null) return RUNNING;
    return { kind: lastBoot.kind, durationMs: Math.round(this.#now() - since) };
  }
}
