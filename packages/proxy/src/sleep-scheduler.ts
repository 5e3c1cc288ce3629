/** Looks regularly for machines that nobody uses, and puts them to sleep once all proxies agree. */
import type { Activity } from "@hibernaut/domain/awake";
import { messageOf } from "@hibernaut/lib/text";
import type { Commands, Machines } from "@hibernaut/machines";
import { activityOf } from "./awake.ts";
import type { ConnectedProxies } from "./connected-proxies.ts";
import { type CoordinatedMachine, isStranded, keptAwakeMs, untilIdleMs } from "./coordinated-machine.ts";
import { type IdleMachine, planSleep } from "./idle.ts";
import { Rotation, type RotationOptions, takesPart } from "./rotation.ts";
import type { ServicePolicy } from "./service-policy.ts";

interface SleepSchedulerOptions extends Omit<RotationOptions, "look"> {
  machines: Pick<Machines, "sleep" | "start" | "disconnect">;
  commands: Pick<Commands, "count">;
  proxies: ConnectedProxies;
  /** Whether the platform starts no machines at the moment. */
  isDraining(): boolean;
  /** How often to look, in milliseconds. Machines that become idle in between are looked at then. */
  intervalMs: number;
  log: { warn(fields: Record<string, unknown>, message: string): void };
}

/** A worker that could not be started, as on a full host, is left alone for this long, in milliseconds: each try is in its history. */
const CALL_REST_MS = 30_000;
/** This many workers are started at one look: after a restart of the platform, all that sleep have lost their connections. */
const CALLS_AT_ONCE = 4;
/** Until the next ones, in milliseconds. */
const CALLS_PAUSE_MS = 1_000;

/** The shortest time between two looks, in milliseconds: a machine that is still needed is not asked about at once. */
export const SHORTEST_PAUSE_MS = 200;

export class SleepScheduler {
  readonly rotation: Rotation;
  readonly #options: SleepSchedulerOptions;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, in milliseconds of `performance.now()`. */
  #due = 0;
  #checking: Promise<void> | undefined;
  #closed = false;
  /** Workers are left to be started. */
  #more = false;

  constructor(options: SleepSchedulerOptions) {
    this.#options = options;
    this.rotation = new Rotation({ ...options, look: (machine) => this.#idleMachine(machine) });
  }

  /** Plans the next look: at the interval, when the next machine becomes idle, or after `mostMs` at the latest. */
  plan(mostMs = this.#options.intervalMs): void {
    const { known, intervalMs } = this.#options;
    let wait = Math.min(mostMs, intervalMs, this.rotation.untilLessMs(), this.#more ? CALLS_PAUSE_MS : intervalMs);
    for (const machine of known.values()) wait = Math.min(wait, this.#untilIdleMs(machine));
    this.#planWithin(wait);
  }

  /** Looks now which machines may sleep, and which sleep in vain. Resolves once those have been told to. */
  async check(): Promise<void> {
    const { known, proxies } = this.#options;
    this.#wakeStranded();
    if (!proxies.hasOneForVisitors) return;
    const pools = Map.groupBy(known.values(), ({ pool }) => pool);
    this.rotation.keepOnly(pools);
    for (const [pool, machines] of pools) {
      const running = machines.filter(takesPart);
      this.rotation.arrange(pool, running);
      const sleepers = planSleep(running.map((machine) => this.#idleMachine(machine)));
      await Promise.all(sleepers.map((id) => this.#putToSleep(id)));
    }
  }

  /** What proxies have open on the machine changed. */
  loadChanged(machine: CoordinatedMachine): void {
    if (this.#isStranded(machine)) return this.#planWithin(SHORTEST_PAUSE_MS);
    const load = this.#options.proxies.load(machine.record.id);
    if (load >= (machine.policy?.softLimit ?? Number.POSITIVE_INFINITY)) this.rotation.becameBusy(machine);
    // The other machines are as they were when the next look was planned. This runs for every request.
    const { intervalMs } = this.#options;
    const wait = machine.resting && load === 0 ? SHORTEST_PAUSE_MS : this.#untilIdleMs(machine);
    this.#planWithin(Math.min(wait, intervalMs, this.rotation.untilLessOfMs(machine.pool)));
  }

  /** Why a running machine does not sleep. */
  activity(machine: CoordinatedMachine): Activity {
    const { record, policy } = machine;
    const { known, commands } = this.#options;
    const siblings = [...known.values()].filter((other) => other.pool === machine.pool && takesPart(other));
    return activityOf({
      ...this.#idleMachine(machine),
      policy,
      cordoned: record.cordoned === true,
      commands: commands.count(record.id),
      lease: { ms: keptAwakeMs(record), reason: record.keepAwake?.reason ?? "" },
      running: siblings.map((sibling) => this.#idleMachine(sibling)),
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#checking;
  }

  /**
   * Plans a look in `waitMs` at the latest. One that is planned for an earlier time stays: steady requests to one app
   * would otherwise put it off forever, and keep every machine of every app awake.
   */
  #planWithin(waitMs: number): void {
    if (this.#closed || this.#checking !== undefined) return;
    const pause = Math.max(SHORTEST_PAUSE_MS, waitMs);
    // Timers run by this clock, also in tests that move the other one.
    const due = performance.now() + pause;
    if (this.#timer !== undefined && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#look(), pause).unref();
  }

  /** Infinite if its time is over: it was already looked at then, and something else kept it awake. */
  #untilIdleMs(machine: CoordinatedMachine): number {
    const { proxies, now } = this.#options;
    const wait = untilIdleMs(machine, proxies.load(machine.record.id), now());
    return wait > 0 ? wait : Number.POSITIVE_INFINITY;
  }

  #look(): void {
    this.#timer = undefined;
    this.#checking = this.check()
      .catch((error: unknown) => this.#options.log.warn({ reason: messageOf(error) }, "the idle check failed"))
      .finally(() => {
        this.#checking = undefined;
        this.plan();
      });
  }

  /** Nothing is known of workers' connections before the proxy that carries them is there. */
  #isStranded(machine: CoordinatedMachine): boolean {
    const { proxies } = this.#options;
    // Asked for every request, and seldom about a worker.
    if (machine.policy?.worker !== true || !proxies.hasOneInside) return false;
    return isStranded(machine, proxies.hasWaits(machine.record.id));
  }

  #wakeStranded(): void {
    const { known, machines, proxies, isDraining, log, now } = this.#options;
    if (isDraining()) return;
    const due = [...known.values()].filter(
      (machine) => this.#isStranded(machine) && now() - machine.calls.triedAt >= CALL_REST_MS,
    );
    for (const { record, calls } of due.slice(0, CALLS_AT_ONCE)) {
      calls.triedAt = now();
      try {
        if (!proxies.hasWaits(record.id)) machines.disconnect(record.app, record.id);
        machines.start(record.app, record.id, { by: "proxy" });
      } catch (error) {
        const reason = messageOf(error);
        if (reason !== calls.told)
          log.warn({ machine: record.id, reason }, "a worker that nothing can wake could not be started");
        calls.told = reason;
      }
    }
    this.#more = due.length > CALLS_AT_ONCE;
  }

  #idleMachine(machine: CoordinatedMachine): IdleMachine {
    const { record, policy, idleSince, resting } = machine;
    const { commands, proxies, now } = this.#options;
    const load = proxies.load(record.id);
    return {
      id: record.id,
      load,
      idleMs: load > 0 ? 0 : now() - idleSince,
      keptAwake: keptAwakeMs(record) > 0 || commands.count(record.id) > 0,
      wakeable: policy?.worker !== true || proxies.hasWaits(record.id),
      resting,
      policy: policy as ServicePolicy,
    };
  }

  async #putToSleep(id: string): Promise<void> {
    const { known, proxies, machines, log, now } = this.#options;
    const machine = known.get(id);
    if (machine?.policy === undefined || machine.draining) return;
    const { idleTimeoutMs, autostop, autostopFallback: otherwise, quiet } = machine.policy;
    machine.draining = true;
    const agreed = await proxies.askToDrain(id, machine.resting ? 0 : idleTimeoutMs);
    // What has happened to it while the proxies were asked.
    const { state, cordoned } = machine.record;
    const { keptAwake, wakeable } = this.#idleMachine(machine);
    const needed = !machine.draining || state !== "running" || cordoned || keptAwake || !wakeable;
    machine.draining = false;
    if (this.#closed || needed || autostop === "off" || !agreed) {
      machine.idleSince = Math.max(machine.idleSince, now() - idleTimeoutMs + SHORTEST_PAUSE_MS);
      return proxies.tellAll({ kind: "undrain", id });
    }
    try {
      const idleMs = Math.round(now() - machine.idleSince);
      const details = { by: "proxy", idle_ms: idleMs, ...(quiet && { quiet }) };
      machines.sleep(machine.record.app, id, { how: autostop, otherwise }, details);
    } catch (error) {
      log.warn({ machine: id, reason: messageOf(error) }, "an idle machine could not be put to sleep");
    }
    if (machine.record.state !== "running") return;
    machine.idleSince = now();
    proxies.tellAll({ kind: "undrain", id });
  }
}
