/**
 * While the CPUs of the host are busy, lets running machines that use little of them come before those that use much: an
 * app that answers a request now and then does not wait for its neighbours' endless work.
 */
import { guestSize } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background, reportFault } from "@hibernaut/lib/background";
import { BUSY, type Use, whoComesLast } from "./rules.ts";

/** How often that is looked at, in milliseconds: for this long, a machine that begins to use all may hold up others. */
const LOOK_MS = 500;
/** How much the newest look counts, against all before: what a machine did is half forgotten after one look. */
const NEWEST = 0.5;
/** Looks at a host that is not busy, after which nobody comes last any more. */
const CALM_LOOKS = 4;
/**
 * How long nobody comes before a machine that was started or has woken, in milliseconds: someone waits for what its app does at
 * first, which takes most of this under emulation.
 */
export const NEW_MS = 60_000;
/** How often at most, in milliseconds: one that crashes and restarts all the time must not be new all the time. */
export const NEW_AGAIN_MS = 600_000;
const LETTING = "letting machines come before another one";

interface CpuTurnsOptions {
  host: { busy(): number };
  /** Returns the CPU time that a machine's VMM has used, in milliseconds. Undefined without one. */
  cpuMs(id: string): Promise<number | undefined>;
  /** See {@link Vmm.comeLast}. */
  comeLast(id: string, last: boolean): Promise<boolean>;
  /** Milliseconds of a steady clock. */
  now?: () => number;
}

interface Running extends Use {
  /** When it began, in milliseconds. */
  since: number;
  cpus: number;
  /** Of the last look: the CPU time, and when that was, in milliseconds. */
  cpuMs?: number;
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

  constructor(options: CpuTurnsOptions) {
    this.#options = options;
  }

  /** How many machines come after others. */
  get last(): number {
    return [...this.#running.values()].filter(({ last }) => last).length;
  }

  /** Takes note of a machine that is new or has changed. Nobody comes before one that is new, or sleeps. */
  follow({ id, state, config }: Pick<MachineRecord, "id" | "state" | "config">): void {
    const running = this.#running.get(id);
    if (state === "running" && running === undefined) {
      const { cpus } = guestSize(config);
      this.#running.set(id, {
        since: this.#begins(id),
        cpus,
        use: 0,
        last: false,
        at: 0,
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
      if (this.#calm < CALM_LOOKS) for (const [id, running] of machines) await this.#measure(id, running);
      const settled = ({ since }: Running) => this.#now() - since >= NEW_MS;
      const uses = machines.map(([, running]) => (settled(running) ? running : { use: 0, last: false }));
      const lasts = this.#calm < CALM_LOOKS ? whoComesLast(uses) : [];
      for (const [index, [id, running]] of machines.entries())
        await this.#take(id, running, lasts[index] ?? false).catch((error: unknown) =>
          reportFault("background", LETTING, error),
        );
    } finally {
      this.#looking = false;
    }
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
    const cpuMs = await this.#options.cpuMs(id);
    const at = this.#now();
    if (cpuMs === undefined) return;
    const passed = at - running.at;
    // What it used while nobody looked says nothing about now.
    const known = running.cpuMs !== undefined && passed > 0 && passed <= LOOK_MS * CALM_LOOKS;
    const newest = known ? Math.max(0, (cpuMs - (running.cpuMs ?? 0)) / passed / running.cpus) : 0;
    running.use = known ? running.use + (newest - running.use) * NEWEST : 0;
    Object.assign(running, { cpuMs, at });
  }

  async #take(id: string, running: Running, last: boolean): Promise<void> {
    if ((running.known && running.last === last) || this.#running.get(id) !== running) return;
    running.refused = !(await this.#options.comeLast(id, last));
    running.known = true;
    running.last = last && !running.refused;
    // It has begun to sleep meanwhile, and the one that noticed may have been overtaken.
    if (this.#running.get(id) !== running && last) await this.#options.comeLast(id, false);
  }
}
