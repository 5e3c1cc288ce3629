/** Remembers when VMMs were kept, for charts. Written a little later, because a wake must not wait for that. */
import { messageOf } from "@hibernaut/lib/text";
import type { KeptWarm, TimelineStore } from "@hibernaut/store";
import type { Logger } from "../dependencies.ts";

/** How long several are collected, in milliseconds. */
const WRITE_MS = 1000;
/** While the store cannot be written, the oldest beyond this number are lost to the charts. */
const MAX_UNWRITTEN = 10_000;

/** Collects the times and stores them. */
export class WarmHistory {
  readonly #timeline: Pick<TimelineStore, "addWarm">;
  readonly #log: Logger;
  #unwritten: KeptWarm[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(timeline: Pick<TimelineStore, "addWarm">, log: Logger) {
    this.#timeline = timeline;
    this.#log = log;
  }

  /** A VMM is no longer kept. */
  add(kept: KeptWarm): void {
    this.#unwritten.push(kept);
    this.#timer ??= setTimeout(() => this.write(), WRITE_MS).unref();
  }

  /** Writes what is not written yet. Never throws: what cannot be written waits for the next time. */
  write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#unwritten.length === 0) return;
    try {
      this.#timeline.addWarm(this.#unwritten);
      this.#unwritten = [];
    } catch (error) {
      this.#unwritten = this.#unwritten.slice(-MAX_UNWRITTEN);
      this.#log.warn({ reason: messageOf(error) }, "when machines were kept warm could not be stored");
    }
  }
}
