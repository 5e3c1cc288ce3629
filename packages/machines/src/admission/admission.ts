/**
 * Admits starts: refuses those for which the host has no room in memory, after kept VMMs of sleeping machines have ended
 * for them. Starts under way count, so that many at once do not each take the same room.
 */
import { setTimeout as delay } from "node:timers/promises";
import { isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { mayHaveGuest } from "../decide/step.ts";
import type { Logger } from "../dependencies.ts";
import type { WarmKeeper } from "../warm/keeper.ts";
import type { HostMemory } from "./host-memory.ts";
import {
  type AdmissionSettings,
  claim,
  counted,
  type HostRoom,
  hostFull,
  leftFor,
  missingFor,
  type Need,
  needOf,
} from "./rules.ts";

/** How long a start that was accepted waits for room, in milliseconds: a machine takes about as long to fall asleep. */
const ENTER_MS = 5_000;
const POLL_MS = 100;
/** Waits of starts that nobody waits for, in milliseconds: the first, and the longest. */
const FIRST_LOOK_MS = 1_000;
const LONGEST_LOOK_MS = 30_000;
/** How often it is found out what guests have in their VMMs alone, in milliseconds: reading that walks their page tables. */
const MEASURE_MS = 5_000;

/** The part of a machine that admission looks at. */
type Applicant = Pick<MachineRecord, "id" | "config">;

/** A machine that has a guest, or is getting one. */
interface Awake extends Need {
  starting: boolean;
  /** What of the guest's memory is in its VMM alone, in bytes, when it was last measured. */
  own: number;
  /** Counts up with each start: those that began earlier get their room first. */
  order: number;
}

interface AdmissionOptions {
  memory: Pick<HostMemory, "available">;
  settings: AdmissionSettings;
  /** What a QEMU takes beyond its guest's memory, in bytes. */
  overhead: number;
  warm: Pick<WarmKeeper, "until" | "evictable" | "makeRoom">;
  /** Returns how much of its memory a machine's guest has in its VMM alone, in bytes. Rejects when it has no VMM any more. */
  ownMemory(id: string): Promise<number>;
  log: Pick<Logger, "info">;
}

export class Admission {
  readonly #options: AdmissionOptions;
  /** The machines that have a guest, or are getting one. */
  readonly #awake = new Map<string, Awake>();
  #order = 0;
  #claimed = 0;
  #starting = 0;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #measuring = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** How many starts wait for room. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Returns how many bytes are left for machines that start; negative when there is less than the reserve. Undefined when
   * nothing is refused for lack of room, or the kernel does not say.
   */
  left(): number | undefined {
    const { settings, memory } = this.#options;
    const available = settings.memoryOvercommit === 0 ? undefined : memory.available();
    if (available === undefined) return undefined;
    return leftFor({ available, claimed: this.#claimed, starting: this.#starting }, settings);
  }

  /** Takes note of a machine that is new or has changed. */
  follow({ id, state, config }: MachineRecord): void {
    const before = this.#awake.get(id);
    this.#count(id, -1);
    this.#awake.delete(id);
    if (!mayHaveGuest(state)) {
      if (this.#awake.size === 0) this.close();
      return;
    }
    const { overhead, warm } = this.#options;
    const need = needOf(config, overhead, warm.until(id) !== undefined);
    const starting = state === "starting";
    const order = starting && before?.starting !== true ? (this.#order += 1) : (before?.order ?? 0);
    this.#awake.set(id, { ...need, starting, order, own: starting ? 0 : (before?.own ?? 0) });
    this.#count(id, 1);
    if (this.#options.settings.memoryOvercommit === 0) return;
    this.#timer ??= setInterval(() => background(this.measure(), "measuring the memory of guests"), MEASURE_MS).unref();
  }

  /** Measures nothing any more, until a machine changes. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Finds out what guests have in their VMMs alone, one after the other. One whose VMM ends meanwhile is passed over. */
  async measure(): Promise<void> {
    if (this.#measuring) return;
    this.#measuring = true;
    for (const id of [...this.#awake.keys()]) {
      const own = await this.#options.ownMemory(id).catch(() => undefined);
      const known = this.#awake.get(id);
      if (own === undefined || known === undefined || known.starting) continue;
      this.#count(id, -1);
      known.own = own;
      this.#count(id, 1);
    }
    this.#measuring = false;
  }

  /** Throws `host_full` when there is no room for the machine, even if everything that is kept warm ends. */
  require(machine: Applicant, what = `machine ${machine.id}`): void {
    const refusal = this.#refusal(machine, what, this.#options.warm.evictable(machine.id));
    if (refusal !== undefined) throw refusal;
  }

  /** Whether {@link require} would not throw. */
  fits(machine: Applicant): boolean {
    return this.#missing(machine, this.#options.warm.evictable(machine.id)) <= 0;
  }

  /**
   * Makes room for a start that was accepted: ends as many kept VMMs as it takes, and waits for others to fall asleep.
   * Rejects with `host_full` if there is no room after 5 s, and with the signal's reason.
   */
  async enter(machine: Applicant, signal: AbortSignal): Promise<void> {
    if (this.#missing(machine, 0) <= 0) return;
    await this.#whileWaiting(() => this.#enter(machine, signal));
  }

  async #enter(machine: Applicant, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    for (;;) {
      const all = this.#missing(machine, 0);
      if (all <= 0) return;
      const missing = all - this.#behind(machine.id);
      if (missing <= 0) return;
      signal.throwIfAborted();
      const evicted = this.#options.warm.makeRoom(missing, machine.id);
      if (evicted !== undefined) {
        this.#options.log.info({ machine: machine.id, missing_mb: inMb(missing) }, "kept VMMs end to make room");
        await evicted;
      } else if (performance.now() - began > ENTER_MS) {
        const refusal = this.#refusal(machine, `machine ${machine.id}`, this.#behind(machine.id));
        if (refusal !== undefined) throw refusal;
      } else await delay(POLL_MS, undefined, { signal });
    }
  }

  /**
   * Waits until there is room for a start that nobody waits for, however long that takes, and looks more and more seldom.
   * `onFull` is called once if there is none at first. Rejects with the signal's reason.
   */
  room(machine: Applicant, signal: AbortSignal, onFull: (reason: string) => void = () => {}): Promise<void> {
    return this.#whileWaiting(() => this.#room(machine, signal, onFull));
  }

  async #room(machine: Applicant, signal: AbortSignal, onFull: (reason: string) => void): Promise<void> {
    for (let wait = FIRST_LOOK_MS; ; wait = Math.min(2 * wait, LONGEST_LOOK_MS)) {
      try {
        return this.require(machine);
      } catch (error) {
        if (!isHibernautError(error, "host_full")) throw error;
        if (wait === FIRST_LOOK_MS) onFull(messageOf(error));
      }
      await delay(wait, undefined, { signal, ref: false });
    }
  }

  async #whileWaiting(work: () => Promise<void>): Promise<void> {
    this.#waiting += 1;
    try {
      await work();
    } finally {
      this.#waiting -= 1;
    }
  }

  #refusal(machine: Applicant, what: string, evictable: number) {
    if (this.#missing(machine, evictable) <= 0) return undefined;
    const { settings } = this.#options;
    return hostFull(what, this.#need(machine), this.#host(machine, evictable), settings);
  }

  /** How many bytes the start of a machine lacks. Nothing is read when nothing is refused. */
  #missing(machine: Applicant, evictable: number): number {
    const { settings } = this.#options;
    if (settings.memoryOvercommit === 0) return 0;
    return missingFor(this.#need(machine), this.#host(machine, evictable), settings);
  }

  #need({ id, config }: Applicant): Need {
    return needOf(config, this.#options.overhead, this.#options.warm.until(id) !== undefined);
  }

  /** The host without the machine itself, which may be starting already. A kernel that says nothing has room. */
  #host({ id }: Applicant, evictable: number): HostRoom {
    const own = this.#awake.get(id);
    const available = (this.#options.memory.available() ?? Number.POSITIVE_INFINITY) + evictable;
    const starting = this.#starting - (own?.starting === true ? own.overhead : 0);
    return { available, claimed: this.#claimed - (own === undefined ? 0 : this.#claim(own)), starting };
  }

  /** What machines take, in bytes as they count, that began to start after this one: they wait for it. */
  #behind(id: string): number {
    const own = this.#awake.get(id);
    if (own === undefined) return 0;
    const { memoryOvercommit } = this.#options.settings;
    let bytes = 0;
    for (const { starting, order, guest, overhead } of this.#awake.values())
      if (starting && order > own.order) bytes += counted(guest, memoryOvercommit) + overhead;
    return bytes;
  }

  #claim({ guest, own }: Awake): number {
    return claim(guest, own, this.#options.settings);
  }

  #count(id: string, sign: 1 | -1): void {
    const known = this.#awake.get(id);
    if (known === undefined) return;
    this.#claimed += sign * this.#claim(known);
    if (known.starting) this.#starting += sign * known.overhead;
  }
}

function inMb(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024);
}
