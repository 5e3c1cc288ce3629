/** What the programs inside a machine are told and may say: starts, a suspend to get ready for, replies on their way. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "../domain/errors.ts";
import { abortable } from "../lib/async.ts";
import { GuestStreams } from "../guest/streams.ts";

/** What `GET /v1/events` in the machine carries. Times in milliseconds. */
export type InsideEvent =
  /** The machine was started; `slept_ms` ago it last ran. Also after a suspend that was given up, with 0. */
  | { kind: "resume" | "cold"; slept_ms: number }
  /** It will be suspended as soon as every listener has said that it is ready, and in `deadline_ms` at the latest. */
  | { kind: "suspend"; id: string; deadline_ms: number };

export type InsideListener = (event: InsideEvent) => void;

/** Every listener is asked with an id of its own, so that nobody answers for another. */
interface Question {
  asked: Map<string, InsideListener>;
  /** Ids that were not answered yet. */
  missing: Set<string>;
  answered: PromiseWithResolvers<void>;
}

export class Inside {
  readonly streams = new GuestStreams();
  readonly #listeners = new Set<InsideListener>();
  readonly #replies = new Set<Promise<void>>();
  #lastStart: InsideEvent | undefined;
  #question: Question | undefined;

  /** Tells of every event from now on, and first of the machine's last start: the app was not there to hear it. */
  subscribe(listener: InsideListener): () => void {
    this.#listeners.add(listener);
    if (this.#lastStart !== undefined) listener(this.#lastStart);
    return () => {
      this.#listeners.delete(listener);
      for (const [id, asked] of this.#question?.asked ?? []) if (asked === listener) this.#answer(id);
    };
  }

  started(kind: "resume" | "cold", sleptMs: number): void {
    this.#lastStart = { kind, slept_ms: Math.max(0, Math.round(sleptMs)) };
    this.#tell(this.#lastStart);
  }

  /** Asks every listener to get ready, and waits until all answered or the time is over. Rejects with the signal's reason. */
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

  /** A listener is ready. `not_found` when nothing, or something else, was asked. */
  ready(id: string): void {
    if (this.#question?.asked.has(id) !== true)
      throw new HibernautError("not_found", `Nothing with the id ${id} waits for an answer.`);
    this.#answer(id);
  }

  /** A reply that must reach the guest before it is suspended. */
  awaitReply(sent: Promise<void>): void {
    const over = sent.catch(() => {}); // one that cannot be sent holds up nothing
    this.#replies.add(over);
    void over.then(() => this.#replies.delete(over));
  }

  async repliesSent(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all(this.#replies), signal);
  }

  #answer(id: string): void {
    this.#question?.missing.delete(id);
    if (this.#question?.missing.size === 0) this.#question.answered.resolve();
  }

  #tell(event: InsideEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
