/** Delivers to all webhooks that are enabled. Without any, it does nothing. */
import type { WebhookRecord } from "@hibernaut/domain/webhook";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Vault } from "@hibernaut/secrets";
import pLimit, { type LimitFunction } from "p-limit";
import type { EventStream } from "../stream.ts";
import type { DeliveryParts, MadeAttempt } from "./parts.ts";
import { type Attempt, OUTCOMES, type Outcome, outcomeOf } from "./rules.ts";
import type { Send } from "./send.ts";
import { signedHeaders, signingSecrets } from "./signing.ts";
import { turns } from "./turns.ts";
import { Worker } from "./worker.ts";

/** Attempts at a time, of all webhooks: more sockets than this help no receiver. */
const AT_A_TIME = 32;
/** Attempts at a time of the webhooks of one app, so that receivers that hang leave places for those of others. */
const AT_A_TIME_OF_APP = 8;

export interface DispatcherOptions extends Omit<DeliveryParts, "attempt"> {
  stream: EventStream;
  vault: Vault;
  send: Send;
}

/** The deliveries of all webhooks. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #limit = pLimit(AT_A_TIME);
  /** By the app that is the first of a webhook. */
  readonly #shares = new Map<string, LimitFunction>();
  readonly #turn = turns();
  readonly #workers = new Map<string, Worker>();
  /** Workers that end. */
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  /** Attempts since the platform started, by outcome. */
  readonly attempts: Record<Outcome, number> = Object.fromEntries(OUTCOMES.map((one) => [one, 0])) as never;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** How many deliveries wait or are made. */
  get waiting(): number {
    return [...this.#workers.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** Begins to deliver what waits, and what comes. */
  start(): void {
    for (const { id } of this.#options.webhooks.list())
      if (!this.#workers.has(id)) background(this.refresh(id), "adopting a webhook");
  }

  /**
   * Adopts a change of a webhook: a new one, another URL, disabled, removed. Resolves when no attempt is as before, and
   * never rejects.
   */
  async refresh(id: string): Promise<void> {
    try {
      await this.#end(id);
      this.#begin(id);
    } catch (err) {
      this.#options.log.error({ err, webhook: id }, "nothing is delivered to a webhook until the platform restarts");
    }
  }

  #begin(id: string): void {
    const webhook = this.#options.webhooks.get(id);
    if (this.#closed || webhook === undefined || webhook.disabled !== null || this.#workers.has(id)) return;
    const worker = new Worker({
      ...this.#options,
      webhook,
      turn: this.#turn,
      attempt: (...given) => this.#inTurn(...given),
      onHopeless: (hopeless, reason) => this.#disable(hopeless, reason),
    });
    this.#workers.set(id, worker);
    worker.start();
  }

  /** Makes an attempt when there is a place for it. Rejects at once when the signal is aborted. */
  #inTurn(...[webhook, message, signal]: Parameters<Dispatcher["attempt"]>): Promise<MadeAttempt> {
    const attempt = () => this.#limit(() => this.attempt(webhook, message, signal));
    const [first] = webhook.apps ?? [];
    if (first === undefined) return abortable(attempt(), signal);
    const share = this.#shares.get(first.name) ?? pLimit(AT_A_TIME_OF_APP);
    this.#shares.set(first.name, share);
    const made = share(attempt).finally(() => {
      if (share.activeCount + share.pendingCount === 0) this.#shares.delete(first.name);
    });
    return abortable(made, signal);
  }

  /** Tells that a receiver has answered a message that was no delivery. */
  answered(id: string): void {
    this.#workers.get(id)?.answered();
  }

  /** Signs a message and sends it once. Rejects only when the signal is aborted. */
  async attempt(
    webhook: WebhookRecord,
    message: { messageId: string; body: string },
    signal: AbortSignal,
  ): Promise<MadeAttempt> {
    signal.throwIfAborted();
    const began = performance.now();
    const now = this.#options.clock.now();
    const attempt = await this.#send(webhook, message, { now, signal });
    this.attempts[outcomeOf(attempt)] += 1;
    return { attempt, at: new Date(now).toISOString(), durationMs: Math.round(performance.now() - began) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const id of [...this.#workers.keys()]) background(this.#end(id), "ending the work for a webhook");
    await Promise.all(this.#ending);
  }

  async #send(
    webhook: WebhookRecord,
    message: { messageId: string; body: string },
    { now, signal }: { now: number; signal: AbortSignal },
  ): Promise<Attempt> {
    let headers: Record<string, string>;
    try {
      headers = signedHeaders(signingSecrets(this.#options.vault, webhook, now), message, now);
    } catch (error) {
      return { failure: "unsigned", reason: messageOf(error) };
    }
    return this.#options.send({ url: webhook.url, headers, body: message.body }, signal);
  }

  #disable(id: string, reason: string): void {
    const { webhooks, clock, log } = this.#options;
    try {
      webhooks.disable(id, { at: new Date(clock.now()).toISOString(), reason });
      log.warn({ webhook: id, reason }, "a webhook was disabled");
    } catch (error) {
      // Without the disk, it stays enabled: the delivery is tried once more when the platform starts again.
      log.error({ err: error, webhook: id }, "a webhook could not be disabled");
    }
    background(this.#end(id), "ending the work for a webhook");
  }

  #end(id: string): Promise<void> {
    const worker = this.#workers.get(id);
    if (worker === undefined) return Promise.resolve();
    this.#workers.delete(id);
    const ending = worker.close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }
}
