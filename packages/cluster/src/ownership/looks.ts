/** Looks at single machines, each as often as it takes: one thing at a time for each, and some machines at a time. */
import { setTimeout as delay } from "node:timers/promises";
import { background } from "@hibernaut/lib/background";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { messageOf } from "@hibernaut/lib/text";
import type { WarnLog } from "./retry.ts";

/** Waits between two looks at a machine, in milliseconds: the first, and the longest, which is how late a host can be. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Machines that are looked at at a time: after a restore of the directory it may be all of them. */
const AT_ONCE = 8;

interface LooksOptions {
  /** Does what is to be done about a machine. Resolves with whether that was all; rejects when it has to be tried again. */
  look(id: string): Promise<boolean>;
  log: WarnLog;
  signal: AbortSignal;
}

interface Looking {
  /** Aborted as soon as it does not wait for other machines. */
  urgent: AbortController;
  /** Something has changed since it began. */
  again: boolean;
  /** Ends the wait before the next look. */
  hurry: AbortController;
}

export class Looks {
  readonly #options: LooksOptions;
  readonly #looking = new Map<string, Looking>();
  readonly #slots = new Semaphore(AT_ONCE);

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  /** Looks at the machine soon, or at once if it is urgent, and again until there is nothing left to do. */
  at(id: string, { urgent = false } = {}): void {
    const looking = this.#looking.get(id);
    if (looking === undefined) return background(this.#keepLooking(id, urgent), "looking up whose a machine is");
    looking.again = true;
    if (urgent) looking.urgent.abort();
    looking.hurry.abort();
  }

  async #keepLooking(id: string, urgent: boolean): Promise<void> {
    const { signal } = this.#options;
    const looking: Looking = { urgent: new AbortController(), again: false, hurry: new AbortController() };
    if (urgent) looking.urgent.abort();
    this.#looking.set(id, looking);
    let told = false;
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      looking.again = false;
      looking.hurry = new AbortController();
      const done = await this.#look(id, { tell: !told, urgent: looking.urgent.signal });
      if (done && !looking.again) break;
      told ||= !done;
      if (looking.again) wait = FIRST_WAIT_MS;
      else
        await delay(wait, undefined, { signal: AbortSignal.any([signal, looking.hurry.signal]), ref: false }).catch(
          () => {},
        );
    }
    this.#looking.delete(id);
  }

  async #look(id: string, { tell, urgent }: { tell: boolean; urgent: AbortSignal }): Promise<boolean> {
    const { log, signal } = this.#options;
    try {
      return await this.#inTurn(id, urgent);
    } catch (error) {
      if (tell && !signal.aborted)
        log.warn({ machine: id, reason: messageOf(error) }, "whose a machine is has to wait");
      return false;
    }
  }

  /** Waits for a slot, unless the look is urgent, or becomes urgent before there is one. */
  async #inTurn(id: string, urgent: AbortSignal): Promise<boolean> {
    const { look, signal } = this.#options;
    let hasBegun = false;
    const begin = () => {
      hasBegun = true;
      return look(id);
    };
    if (urgent.aborted) return look(id);
    try {
      return await this.#slots.run(begin, AbortSignal.any([signal, urgent]));
    } catch (error) {
      if (hasBegun || !urgent.aborted || signal.aborted) throw error;
      return look(id);
    }
  }
}
