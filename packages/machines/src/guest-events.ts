/** What the programs inside a machine are told, and what they answer: starts, and suspends to get ready for. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { GuestStreams } from "@hibernaut/guest";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";

/** What `GET /v1/events` in the machine carries. Times in milliseconds. */
export type GuestEvent =
  /** The machine was started, and last ran `slept_ms` ago. Also sent after a cancelled suspend, with 0. */
  | { kind: "resume" | "cold"; slept_ms: number }
  /** The machine was born from the memory of another one, which was taken `slept_ms` ago, and is itself now. */
  | { kind: "fork"; slept_ms: number }
  /** The machine will be suspended as soon as every listener is ready, and after `deadline_ms` at the latest. */
  | { kind: "suspend"; id: string; deadline_ms: number };

export type GuestListener = (event: GuestEvent) => void;

/** A suspend that waits. Every listener gets a different id, so that none can answer for another. */
interface Question {
  asked: Map<string, GuestListener>;
  /** Ids without an answer so far. */
  missing: Set<string>;
  answered: PromiseWithResolvers<void>;
}

/** The events of one machine, and the streams to its guest. Outlives the guests of the machine. */
export class GuestEvents {
  readonly streams = new GuestStreams();
  readonly #listeners = new Set<GuestListener>();
  readonly #replies = new Set<Promise<void>>();
  #lastStart: GuestEvent | undefined;
  #question: Question | undefined;

  /** Calls `listener` with the machine's last start, which happened before the app could listen, then with each event. */
  subscribe(listener: GuestListener): () => void {
    this.#listeners.add(listener);
    if (this.#lastStart !== undefined) listener(this.#lastStart);
    return () => {
      this.#listeners.delete(listener);
      for (const [id, asked] of this.#question?.asked ?? []) if (asked === listener) this.#answer(id);
    };
  }

  /** Tells the listeners of a start. */
  started(kind: "resume" | "cold" | "fork", sleptMs: number): void {
    const event: GuestEvent = { kind, slept_ms: Math.max(0, Math.round(sleptMs)) };
    this.#lastStart = event;
    this.#tell(event);
  }

  /** Asks every listener to get ready. Settles when all have answered or the time is up; rejects with the signal's reason. */
  async askToGetReady(deadlineMs: number, signal: AbortSignal): Promise<"ready" | "late"> {
    if (this.#listeners.size === 0) return "ready";
    const asked = new Map([...this.#listeners].map((listener) => [randomUUID() as string, listener]));
    const question = { asked, missing: new Set(asked.keys()), answered: Promise.withResolvers<void>() };
    this.#question = question;
    const over = new AbortController();
    try {
      for (const [id, listener] of asked) listener({ kind: "suspend", id, deadline_ms: deadlineMs });
      const ready = question.answered.promise.then(() => "ready" as const);
      const late = delay(deadlineMs, "late" as const, { signal: over.signal, ref: false });
      return await abortable(Promise.race([ready, late]), signal);
    } finally {
      over.abort();
      this.#question = undefined;
    }
  }

  /** Records that a listener is ready. Throws `not_found` when no suspend with this id waits. */
  ready(id: string): void {
    if (this.#question?.asked.has(id) !== true)
      throw new HibernautError("not_found", `No suspend with the id ${id} is waiting for an answer.`);
    this.#answer(id);
  }

  /** Remembers a reply that must reach the guest before it is suspended. */
  awaitReply(sent: Promise<void>): void {
    const over = sent.catch(() => {}); // a reply that cannot be sent delays nothing
    this.#replies.add(over);
    background(
      over.then(() => this.#replies.delete(over)),
      "counting replies to a machine",
    );
  }

  /** Settles when those replies were sent. Rejects with the signal's reason. */
  async repliesSent(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all(this.#replies), signal);
  }

  #answer(id: string): void {
    this.#question?.missing.delete(id);
    if (this.#question?.missing.size === 0) this.#question.answered.resolve();
  }

  #tell(event: GuestEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
