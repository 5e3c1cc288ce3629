/** One timer for the schedules and planned wakes of all machines. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { messageOf } from "@hibernaut/lib/text";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import type { Logger } from "../dependencies.ts";
import type { Drain } from "../resources/drain.ts";
import { nextLook } from "./due.ts";

/**
 * The longest time between two looks, in milliseconds. The timer runs by a steady clock and schedules by the wall clock:
 * this is how late a run can be after the wall clock was set. It is also far below the 24.8 days that a timer can wait.
 */
const LONGEST_WAIT_MS = 30_000;

/** Wait after a start that could not be stored, in milliseconds. The store may have no room for a while. */
const RETRY_MS = 5_000;

interface DueTimerOptions {
  controllers: ControllerSet;
  /** While it lasts, what is due waits. It is made up for afterwards, like what was missed while the platform was down. */
  drain: Pick<Drain, "active" | "subscribe">;
  /** The wall clock. */
  clock(): Date;
  log: Pick<Logger, "error" | "warn">;
}

/** Returns how long to wait until then, in milliseconds; `next` is milliseconds since 1970. */
function waitMs(next: number, now: number): number {
  return Math.min(Math.max(next - now, 0), LONGEST_WAIT_MS);
}

export class DueTimer {
  readonly #options: DueTimerOptions;
  /** When to look at each machine that waits for a time, in milliseconds since 1970. */
  readonly #looks = new Map<string, number>();
  /** Machines whose start is due and waits, with what the log said about it. */
  readonly #told = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #lookedAt = 0;

  constructor(options: DueTimerOptions) {
    this.#options = options;
  }

  /** Does what is due, and from now on what becomes due. Returns a function that ends that. */
  start(): () => void {
    const { controllers, drain } = this.#options;
    this.#running = true;
    const unsubscribe = controllers.changes.subscribe("waiting", (record) => {
      this.#remember(record);
      this.#plan();
    });
    const unsubscribeDrain = drain.subscribe(() => this.look());
    for (const { record } of controllers.all()) this.#remember(record);
    this.look();
    return () => {
      this.#running = false;
      clearTimeout(this.#timer);
      unsubscribe();
      unsubscribeDrain();
    };
  }

  /** Does what is due now. */
  look(): void {
    if (this.#options.drain.active) return clearTimeout(this.#timer);
    const { controllers, clock } = this.#options;
    const now = clock().getTime();
    // What was due by a clock that ran ahead is decided again.
    if (now < this.#lookedAt) for (const { record } of controllers.all()) this.#remember(record);
    this.#lookedAt = now;
    for (const [id, at] of [...this.#looks]) {
      const controller = at <= now ? controllers.get(id) : undefined;
      if (controller !== undefined) this.#handle(controller);
    }
    this.#plan();
  }

  #handle(controller: MachineController): void {
    const { id } = controller.record;
    try {
      controller.timePassed();
      this.#remember(controller.record);
      this.#told.delete(id);
    } catch (error) {
      this.#say(id, error);
      this.#looks.set(id, this.#options.clock().getTime() + RETRY_MS);
    }
  }

  /** A host, or its disk, may be full for days: the log says it once for each start, and when the reason is another one. */
  #say(id: string, error: unknown): void {
    const fields = { machine: id, reason: messageOf(error) };
    const full = isHibernautError(error, "host_full"); // its message counts megabytes
    const why = full ? error.code : fields.reason;
    if (this.#told.get(id) === why) return;
    this.#told.set(id, why);
    if (full) this.#options.log.warn(fields, "a start that is due waits for room");
    else this.#options.log.error(fields, "a start that is due cannot be stored");
  }

  #remember(record: MachineRecord): void {
    const next = nextLook(record, this.#options.clock());
    if (next === undefined) {
      this.#looks.delete(record.id);
      this.#told.delete(record.id);
    } else this.#looks.set(record.id, next.getTime());
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (!this.#running || this.#options.drain.active || this.#looks.size === 0) return;
    const next = [...this.#looks.values()].reduce((first, one) => Math.min(first, one));
    this.#timer = setTimeout(() => this.look(), waitMs(next, this.#options.clock().getTime())).unref();
  }
}
