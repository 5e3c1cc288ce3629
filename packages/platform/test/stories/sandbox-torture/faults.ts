/** What is killed: the platform, and virtual machines, each at any moment. */
import { setTimeout as delay } from "node:timers/promises";
import type { Place } from "../../helpers/served.ts";
import type { Random } from "../../power/random.ts";

/** Between two faults, in milliseconds: a machine that starts from scratch needs some of it. */
const CALM_MS = [500, 14_000] as const;
/** How long the platform stays away, in milliseconds. */
const AWAY_MS = 1_500;
/** By then, the platform has noticed that a virtual machine is gone, also on a busy host. */
const NOTICED_MS = 5_000;
/** By then, clients know that their connections to a former platform are closed. */
const CLOSED_MS = 1_000;

/** Told before and after a virtual machine is killed. */
type Witness = (machineId: string) => void;

const KINDS = ["platform", "platform", "machine", "machine", "both"] as const;

export class Faults {
  /** How often each kind has happened. */
  readonly done: Record<string, number> = {};
  readonly #place: Place;
  readonly #random: Random;
  readonly #witness: Witness;
  /** On the clock of `performance.now()`. */
  readonly #away: { from: number; until: number }[] = [];
  readonly #killed: { id: string; at: number }[] = [];
  #back: Promise<void> = Promise.resolve();

  constructor(place: Place, random: Random, witness: Witness) {
    this.#place = place;
    this.#random = random;
    this.#witness = witness;
  }

  /** Lets faults happen until `going` returns false. The platform is there when this settles. */
  async go(going: () => boolean, say: (line: string) => void): Promise<void> {
    while (going()) {
      await delay(this.#random.between(...CALM_MS));
      const kind = this.#random.pick(KINDS);
      this.done[kind] = (this.done[kind] ?? 0) + 1;
      say(`kills: ${kind}`);
      if (kind === "machine") await this.#killMachine(say);
      else await this.#killPlatform(async () => void (kind === "both" && (await this.#killMachine(say))));
      say("killed");
    }
  }

  /** Resolves when the platform is there. */
  back(): Promise<void> {
    return this.#back;
  }

  /** Whether the platform was away at some time since then. */
  away(since: number): boolean {
    return this.#away.some(({ until }) => until + CLOSED_MS >= since);
  }

  /** Whether a virtual machine was killed since then; of this machine, if one is named. */
  struck(since: number, id?: string): boolean {
    return this.#killed.some((each) => each.at >= since && (id === undefined || each.id === id));
  }

  /** The same, with the time that the platform needs to notice. */
  disturbed(since: number, id?: string): boolean {
    return this.struck(since - NOTICED_MS, id);
  }

  async #killPlatform(meanwhile: () => Promise<void>): Promise<void> {
    const span = { from: performance.now(), until: Number.POSITIVE_INFINITY };
    this.#away.push(span);
    const work = async () => {
      await this.#place.served.kill();
      await meanwhile();
      await delay(this.#random.between(0, AWAY_MS));
      await this.#place.served.start();
    };
    const done = work();
    this.#back = done.catch(() => {}); // the one below says so
    await done;
    span.until = performance.now();
  }

  async #killMachine(say: (line: string) => void): Promise<void> {
    const [first, ...others] = await this.#place.processes();
    if (first === undefined) return;
    const { pid, machineId: id } = this.#random.pick([first, ...others]);
    this.#witness(id);
    this.#killed.push({ id, at: performance.now() });
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    this.#witness(id);
    say(`${id} (${pid}) was killed`);
  }
}
