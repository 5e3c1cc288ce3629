/** What one proxy knows of one machine. */
import type { MachineState } from "../domain/machine.ts";
import type { Candidate } from "./balance.ts";
import type { Wake } from "./contract.ts";
import { MachineLoad } from "./load.ts";
import type { Policy } from "./policy.ts";
import type { TableMachine } from "./table.ts";

/** A machine that failed, or whose app crashed and is not started again, rests before a request starts it. */
export const FAILED_REST_MS = 10_000;

/** States in which an app that is known to crash is between two attempts of its restart policy, or in one. */
const CRASH_LOOP: ReadonlySet<MachineState> = new Set(["starting", "stopping", "restarting"]);

const RUNNING: Wake = { kind: "running", durationMs: 0 };

/** A candidate for requests as it stands: it is looked at for every one of them. */
export class Entry implements Candidate {
  machine: TableMachine;
  policy: Policy;
  /** What this proxy has open on it. */
  readonly open: MachineLoad;
  /** Load that other proxies put on it. */
  others = 0;
  /** Upgraded connections among its open requests. */
  tunnels = 0;
  /** It may be put to sleep any moment: it takes nothing more. */
  draining = false;
  /** A wake was asked for, and nothing has changed since. */
  asked = false;
  /** When its last start was told of. A suspend that was turned back is no start. */
  startedAt = Number.NEGATIVE_INFINITY;
  failedAt = Number.NEGATIVE_INFINITY;
  readonly #now: () => number;

  constructor(machine: TableMachine, policy: Policy, now: () => number) {
    this.machine = machine;
    this.policy = policy;
    this.open = new MachineLoad(now());
    this.#now = now;
  }

  get id(): string {
    return this.machine.id;
  }

  /** A machine that is being drained is on its way to sleep already: only a wake turns it around. */
  get state(): MachineState {
    const { state } = this.machine;
    if (state === "running" && this.draining) return "suspending";
    return state === "failed" && this.#rested >= FAILED_REST_MS ? "stopped" : state;
  }

  get reachable(): boolean {
    return this.machine.unreachable === null;
  }

  get crashing(): boolean {
    const { crash, state } = this.machine;
    if (crash === null) return false;
    return CRASH_LOOP.has(state) || (state === "stopped" && this.#rested < FAILED_REST_MS);
  }

  /** In how many seconds a request may find it better. */
  retryAfterS(wallMs = Date.now()): number {
    const { crash } = this.machine;
    const due = crash?.retryAt ?? null;
    const leftMs = due === null ? FAILED_REST_MS - this.#rested : Date.parse(due) - wallMs;
    return Math.max(1, Math.ceil(leftMs / 1000));
  }

  /** Since it failed, in milliseconds. */
  get #rested(): number {
    return this.#now() - this.failedAt;
  }

  get load(): number {
    return this.own + this.others;
  }

  /** Load that this proxy puts on it. */
  get own(): number {
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
    return this.machine.healthy;
  }

  /** What woke it, for a request that waits since then: a machine that came to run meanwhile was woken for it. */
  wakeSince(since: number | undefined): Wake {
    const { lastBoot } = this.machine;
    if (since === undefined || this.startedAt < since || lastBoot === null) return RUNNING;
    return { kind: lastBoot.kind, durationMs: Math.round(this.#now() - since) };
  }
}
