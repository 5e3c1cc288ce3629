/** What the programs inside a machine are told and may say: starts, a suspend to get ready for, replies on their way. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "../errors.ts";
import { abortable } from "../guest/agent.ts";
import { GuestStreams } from "../guest/streams.ts";

/** What `GET /v1/events` in the machine carries. Times in milliseconds. */
export type InsideEvent =
  /** The machine was started; `slept_ms` ago it last ran. Also after a suspend that was given up, with 0. */
  | { kind: "resume" | "cold"; slept_ms: number }
  /** It will be suspended as soon as every listener has said that it is ready, and in `deadline_ms` at the latest. */
  | { kind: "suspend"; id: string; deadline_ms: number };

export type InsideListener = (event: InsideEvent) => void;

interface Question {
  id: string;
  /** Listeners that have not answered. */
  missing: number;
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
      if (this.#listeners.delete(listener)) this.#answer();
    };
  }

  started(kind: "resume" | "cold", sleptMs: number): void {
    this.#lastStart = { kind, slept_ms: Math.max(0, Math.round(sleptMs)) };
    this.#tell(this.#lastStart);
  }

  /** Asks every listener to get ready, and waits until all answered or the time is over. Rejects with the signal's reason. */
  async askToGetReady(deadlineMs: number, signal: AbortSignal): Promise<"ready" | "late"> {
    if (this.#listeners.size === 0) return "ready";
    const question = { id: randomUUID(), missing: this.#listeners.size, answered: Promise.withResolvers<void>() };
    this.#question = question;
    const over = new AbortController();
    try {
      this.#tell({ kind: "suspend", id: question.id, deadline_ms: deadlineMs });
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
    if (this.#question?.id !== id)
      throw new HibernautError("not_found", `Nothing with the id ${id} waits for an answer.`);
    this.#answer();
  }

  /** A reply that must reach the guest before it is suspended. */
  awaitReply(sent: Promise<void>): void {
    this.#replies.add(sent);
    void sent.finally(() => this.#replies.delete(sent));
  }

  async repliesSent(signal: AbortSignal): Promise<void> {
    await abortable(Promise.all(this.#replies), signal);
  }

  #answer(): void {
    if (this.#question === undefined) return;
    this.#question.missing -= 1;
    if (this.#question.missing <= 0) this.#question.answered.resolve();
  }

  #tell(event: InsideEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
