/**
 * While the CPUs of the host are busy, lets running machines that want little of them come before those that want much: an
 * app that answers a request now and then does not wait for its neighbours' endless work.
 */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { ThreadTimes } from "@hibernaut/hypervisor";
import { background, reportFault } from "@hibernaut/lib/background";
import type { HostCpu } from "./host-cpu.ts";
import { BUSY, type Contender, shareSince, whoComesLast, whoIsDoubted } from "./rules.ts";

/** How often that is looked at, in milliseconds. A machine that begins to want all may hold up others for six times as long. */
const LOOK_MS = 500;
/** How much the newest look counts, against all before: what a machine did is half forgotten after three seconds. */
const NEWEST = 0.1;
/** Looks at a host that is not busy, after which nobody comes last any more. */
const CALM_LOOKS = 4;
/**
 * How long nobody comes before a machine that was started or has woken, in milliseconds: someone waits for what its app does at
 * first, which takes most of this under emulation.
 */
export const NEW_MS = 60_000;
/** How often at most, in milliseconds: one that crashes and restarts all the time must not be new all the time. */
export const NEW_AGAIN_MS = 3_600_000;
/** How many looks apart one that comes last has to show whether it does so rightly: see {@link whoIsDoubted}. */
const DOUBT_LOOKS = 40;
const UNKNOWN = { ran: 0, waited: 0, looks: 0, times: undefined };
const LETTING = "letting machines come before another one";

interface CpuTurnsOptions {
  host: Pick<HostCpu, "busy" | "count">;
  /** See {@link Vmm.threadTimes}. */
  threadTimes(id: string): Promise<ReadonlyMap<number, ThreadTimes> | undefined>;
  /** See {@link Vmm.comeLast}. */
  comeLast(id: string, last: boolean): Promise<boolean>;
  /** Milliseconds of a steady clock. */
  now?: () => number;
}

interface Running extends Contender {
  /** When it began, in milliseconds. */
  since: number;
  /** What the last look saw, and when that was, in milliseconds. */
  times: ReadonlyMap<number, ThreadTimes> | undefined;
  at: number;
  /** Whether the platform knows `last`: a VMM that it found may be anything. */
  known: boolean;
  /** The host does not let the platform. */
  refused: boolean;
}

export class CpuTurns {
  readonly #options: CpuTurnsOptions;
  readonly #running = new Map<string, Running>();
  /** When machines were new last, by id. */
  readonly #newAt = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #calm = CALM_LOOKS;
  #busyLooks = 0;

  constructor(options: CpuTurnsOptions) {
    this.#options = options;
  }

  /** How many machines come after others. */
  get last(): number {
    return [...this.#running.values()].filter(({ last }) => last).length;
  }

  /** Takes note of a machine that is new or has changed. Nobody comes before one that is new, or sleeps. */
  follow({ id, state }: Pick<MachineRecord, "id" | "state">): void {
    const running = this.#running.get(id);
    if (state === "running" && running === undefined) {
      this.#running.set(id, {
        since: this.#begins(id),
        ...UNKNOWN,
        doubted: 0,
        last: false,
        at: 0,
        spared: false,
        known: false,
        refused: false,
      });
    }
    if (state === "destroyed") this.#newAt.delete(id);
    if (state !== "running" && running !== undefined) {
      this.#running.delete(id);
      // Its VMM may be kept, and has to be quick when it wakes.
      if (running.last) background(this.#options.comeLast(id, false), LETTING);
    }
    if (this.#running.size === 0) this.close();
    else this.#timer ??= setInterval(() => background(this.look(), "looking at who uses the CPUs"), LOOK_MS).unref();
  }

  /** Looks at nothing any more, until a machine changes. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks at all running machines, if the host is busy or was until now. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      this.#calm = this.#options.host.busy() >= BUSY ? 0 : this.#calm + 1;
      const machines = [...this.#running].filter(([, { refused }]) => !refused);
      // What it had while nobody looked says nothing about now.
      if (this.#calm >= CALM_LOOKS) for (const [, running] of machines) Object.assign(running, UNKNOWN);
      else for (const [id, running] of machines) await this.#measure(id, running);
      const lasts = this.#calm < CALM_LOOKS ? this.#lasts(machines.map(([, running]) => running)) : [];
      for (const [index, [id, running]] of machines.entries())
        await this.#take(id, running, lasts[index] ?? false).catch((error: unknown) =>
          reportFault("background", LETTING, error),
        );
    } finally {
      this.#looking = false;
    }
  }

  #lasts(machines: readonly Running[]): boolean[] {
    for (const machine of machines) machine.spared = this.#now() - machine.since < NEW_MS;
    this.#busyLooks += 1;
    const doubted = this.#busyLooks % DOUBT_LOOKS === 0 ? machines[whoIsDoubted(machines) ?? -1] : undefined;
    if (doubted !== undefined) Object.assign(doubted, UNKNOWN, { doubted: this.#busyLooks });
    return whoComesLast(machines, this.#options.host.count);
  }

  /** When the first minute of a machine that runs now began. */
  #begins(id: string): number {
    const [now, before] = [this.#now(), this.#newAt.get(id)];
    if (before !== undefined && now - before < NEW_AGAIN_MS) return before;
    this.#newAt.set(id, now);
    return now;
  }

  #now(): number {
    return this.#options.now?.() ?? performance.now();
  }

  async #measure(id: string, running: Running): Promise<void> {
    const times = await this.#options.threadTimes(id);
    const at = this.#now();
    if (times === undefined) return;
    if (running.times !== undefined && at > running.at) {
      const newest = shareSince(running.times, times, at - running.at);
      running.looks += 1;
      const counts = Math.max(NEWEST, 1 / running.looks);
      running.ran += (newest.ran - running.ran) * counts;
      running.waited += (newest.waited - running.waited) * counts;
    }
    Object.assign(running, { times, at });
  }

  async #take(id: string, running: Running, last: boolean): Promise<void> {
    if ((running.known && running.last === last) || this.#running.get(id) !== running) return;
    // Until it has been done: half-way, it may be anything.
    running.known = false;
    try {
      running.refused = !(await this.#options.comeLast(id, last));
      running.known = true;
      running.last = last && !running.refused;
    } finally {
      // It has begun to sleep meanwhile, and the one that noticed may have been overtaken.
      if (this.#running.get(id) !== running && last) await this.#options.comeLast(id, false);
    }
  }
}
