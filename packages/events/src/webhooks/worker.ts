/** Delivers the events of one webhook: takes them from the stream, and sends them until they have arrived. */
import type { PendingDelivery, WebhookRecord } from "@hibernaut/domain/webhook";
import { aborted } from "@hibernaut/lib/async";
import type { EventStream, Gap, Position, Told } from "../stream.ts";
import { Lanes } from "./lanes.ts";
import { deliveryOf, gapDelivery, wants } from "./message.ts";
import type { DeliveryParts } from "./parts.ts";
import { failureText, outcomeOf, waitAfter } from "./rules.ts";

/** Deliveries of a webhook at a time: each is of another machine. */
const AT_A_TIME = 4;
/** Likewise while the receiver fails: a slow one must not take the places of others. */
const AT_A_TIME_FAILING = 1;
/** Events that the webhook does not want are noted this many at a time: a restart reads them again. */
const NOTE_POSITION_EVERY = 1_000;
/** What could not be stored or read is tried again after so long, in milliseconds: a full disk does not empty at once. */
const FAULT_PAUSE_MS = 5_000;

interface WorkerOptions extends DeliveryParts {
  stream: EventStream;
  webhook: WebhookRecord;
  /** Waits until the webhook may read on: the event loop is also for others. Never rejects. */
  turn(): Promise<void>;
  /** The webhook has to be disabled, because of this. */
  onHopeless(id: string, reason: string): void;
}

/** Delivers to one webhook until it is closed. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #closing = new AbortController();
  readonly #lanes = new Lanes();
  readonly #delivering = new Set<Promise<void>>();
  #webhook: WebhookRecord;
  #noted: number;
  #position: number;
  #reading: Promise<void> = Promise.resolve();
  #room = Promise.withResolvers<void>();
  #cancelTimer = () => {};
  #failing = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#webhook = options.webhook;
    this.#noted = options.webhook.position;
    this.#position = options.webhook.position;
  }

  /** How many deliveries wait or are made. */
  get waiting(): number {
    return this.#lanes.size;
  }

  /** Begins where the last worker of the webhook ended, however it ended. */
  start(): void {
    for (const delivery of this.#options.deliveries.pending(this.#webhook.id)) this.#lanes.add(delivery);
    this.#reading = this.#read();
    this.#pump();
  }

  /** Notes the answer to a message that was sent on the side. What failed because the receiver was away is due. */
  answered(): void {
    this.#succeeded();
    this.#pump();
  }

  /** Gives up attempts that are made: they are repeated by the next worker. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    await this.#reading;
    await Promise.all(this.#delivering);
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing;
    const ended = aborted(signal);
    while (!signal.aborted) {
      try {
        for await (const block of this.#blocks()) {
          this.#takeIn(block);
          while (this.#lanes.size >= this.#options.maxWaiting && !signal.aborted)
            await Promise.race([this.#room.promise, ended]);
          await this.#options.turn();
          if (signal.aborted) break;
        }
        this.#note([]);
      } catch (error) {
        if (signal.aborted) return;
        this.#fault(error, "events could not be taken to a webhook");
        await Promise.race([this.#pause(), ended]);
      }
    }
  }

  #blocks() {
    const { signal } = this.#closing;
    // Not counted: one whose queue is full reads no further, which does not mean that a client is slow.
    const how = { follow: true, signal, counted: false };
    return this.#options.stream.read({ types: [] }, { since: this.#position }, how);
  }

  #takeIn(block: readonly (Told | Gap | Position)[]): void {
    const now = new Date(this.#options.clock.now()).toISOString();
    let position = this.#position;
    const wanted = [];
    for (const one of block) {
      if ("at" in one) continue;
      if ("after" in one) {
        wanted.push(gapDelivery(one, now));
        position = one.until;
        continue;
      }
      const { event } = one;
      position = event.sequence;
      // From here on, another app may have the name, also when the webhook is not told so.
      if (event.type === "app.deleted") this.#forgetLater(event.app);
      if (wants(this.#webhook, event)) wanted.push(deliveryOf(event));
    }
    if (wanted.length === 0 && position - this.#noted < NOTE_POSITION_EVERY) {
      this.#position = position;
      return;
    }
    this.#options.deliveries.takeIn(this.#webhook.id, position, wanted);
    this.#position = position;
    this.#noted = position;
    for (const { sequence, lane } of wanted) this.#lanes.add({ sequence, lane, attempts: 0, nextAt: 0 });
    this.#pump();
  }

  /** Learns where the events of an app of the webhook end that was deleted. */
  #forgetLater(app: string | null): void {
    const { webhooks } = this.#options;
    if (this.#webhook.apps?.some(({ name }) => name === app) !== true) return;
    this.#webhook = webhooks.get(this.#webhook.id) ?? this.#webhook;
  }

  /** Begins as many deliveries as may be made, and sees to it that the next one begins in time. */
  #pump(): void {
    const { clock } = this.#options;
    this.#cancelTimer();
    if (this.#closing.signal.aborted) return;
    const places = this.#failing ? AT_A_TIME_FAILING : AT_A_TIME;
    while (this.#delivering.size < places) {
      const next = this.#lanes.take(clock.now());
      if (next === undefined) break;
      const delivering = this.#deliver(next).finally(() => {
        this.#delivering.delete(delivering);
        this.#pump();
      });
      this.#delivering.add(delivering);
    }
    const due = this.#lanes.nextDue();
    if (due === undefined || this.#delivering.size >= places) return;
    this.#cancelTimer = clock.later(Math.max(0, due - clock.now()), () => this.#pump());
  }

  /** Never rejects. */
  async #deliver(delivery: PendingDelivery): Promise<void> {
    const { clock, deliveries, attempt } = this.#options;
    const { signal } = this.#closing;
    const { lane, sequence, attempts } = delivery;
    try {
      const message = deliveries.message(this.#webhook.id, sequence);
      // Someone dropped it.
      if (message === undefined) return this.#finish(lane);
      const made = await attempt(this.#webhook, message, signal);
      if (signal.aborted) return;
      this.#settle(delivery, made);
    } catch (error) {
      if (signal.aborted) return;
      this.#fault(error, "a delivery to a webhook could not be noted, and is repeated");
      this.#lanes.retry(lane, { nextAt: clock.now() + FAULT_PAUSE_MS, attempts });
    }
  }

  #settle({ lane, sequence, attempts }: PendingDelivery, made: Awaited<ReturnType<DeliveryParts["attempt"]>>): void {
    const { clock, deliveries, random, onHopeless } = this.#options;
    const { id } = this.#webhook;
    const { attempt, ...times } = made;
    const status = "status" in attempt ? attempt.status : null;
    const record = { ...times, status, error: failureText(attempt) };
    const outcome = outcomeOf(attempt);
    const now = clock.now();
    if (outcome === "delivered") {
      deliveries.delivered(id, sequence, record);
      this.#finish(lane);
      this.#succeeded();
      return;
    }
    this.#failing = true;
    const failures = attempts + 1;
    const wait = outcome === "gone" ? undefined : waitAfter(failures, attempt, { now, random: random() });
    const nextAt = wait === undefined ? now : now + wait;
    deliveries.failed(id, sequence, record, nextAt);
    this.#lanes.retry(lane, { nextAt, attempts: failures });
    if (wait === undefined) {
      const last = outcome === "gone" ? "" : ` It was the last of ${failures} attempts.`;
      onHopeless(id, `${record.error ?? ""}${last}`);
    }
  }

  #succeeded(): void {
    this.#failing = false;
    this.#lanes.answered(this.#options.clock.now());
  }

  #finish(lane: string): void {
    this.#lanes.done(lane);
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }

  #note(deliveries: readonly never[]): void {
    if (this.#position !== this.#noted) this.#options.deliveries.takeIn(this.#webhook.id, this.#position, deliveries);
    this.#noted = this.#position;
  }

  #fault(error: unknown, what: string): void {
    this.#options.log.error({ err: error, webhook: this.#webhook.id }, what);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => void this.#options.clock.later(FAULT_PAUSE_MS, resolve));
  }
}
