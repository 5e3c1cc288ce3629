/** Reads the stream of events for any number of readers: what was, and what comes. */
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import type { StreamEvent } from "@hibernaut/domain/stream-event";
import { background } from "@hibernaut/lib/background";
import type { OutboxStore } from "@hibernaut/store";
import { filterAfter, passes, type StreamFilter } from "./filter.ts";
import { serverSent, textOf } from "./wire.ts";

/** Events read at a time. Between two of these, other work has its turn: a reader who catches up with days holds up nobody. */
const BATCH = 500;
/** Readers are told at most this often, in milliseconds: many changes then cost each of them one write. */
const PAUSE_MS = 50;
/** Many readers are told less often, because each write costs the same: another 1.5 ms for each. */
const PAUSE_PER_READER_MS = 1.5;
/** Longer, in milliseconds, and people notice. */
const MAX_PAUSE_MS = 300;
/** The newest events stay in memory, because all readers who keep up read the same. */
const REMEMBERED = 1_000;

/** From where to read. */
export interface StreamStart {
  /** After this sequence number. */
  since?: number | undefined;
  /** The last events that pass, this many, and then what comes. */
  tail?: number | undefined;
}

/** An event, and the server-sent event that it becomes, which is made once for all readers. */
export interface Told {
  event: StreamEvent;
  text: string;
}

/** Says that events between two sequence numbers are no longer there. */
export interface Gap {
  /** After this one. */
  after: number;
  /** The reader continues after this one. */
  until: number;
}

/** Where a reader begins: what comes next is after this sequence number. */
export interface Position {
  at: number;
}

/** The stream of one platform. */
export class EventStream {
  readonly #outbox: OutboxStore;
  #remembered: Told[] = [];
  /** What wakes the readers who wait. A promise that all share would remember every wait of each reader. */
  #waiting = new Set<() => void>();
  #telling = false;
  /** How far the clients who read have come. */
  readonly #readers = new Set<Position>();
  readonly #unsubscribe: () => void;

  constructor(outbox: OutboxStore) {
    this.#outbox = outbox;
    this.#unsubscribe = outbox.subscribe(() => background(this.#tell(), "telling what happened"));
  }

  /**
   * Reads events in blocks, some of them empty, until `signal` is aborted or, without `follow`, until there are no more.
   * Begins with what comes when `start` says nothing. Says once where that is, before the first event that comes.
   *
   * @param how `counted`: whether this is a client, which {@link readers} counts. True by default.
   */
  async *read(
    filter: StreamFilter,
    { since, tail }: StreamStart,
    { follow, signal, counted = true }: { follow: boolean; signal: AbortSignal; counted?: boolean },
  ): AsyncGenerator<(Told | Gap | Position)[], void> {
    const position = { at: this.#outbox.newest() };
    if (counted) this.#readers.add(position);
    try {
      yield* this.#read(filter, { since, tail, position }, { follow, signal });
    } finally {
      this.#readers.delete(position);
    }
  }

  /** The newest sequence number. */
  newest(): number {
    return this.#outbox.newest();
  }

  /** How many clients read, and how many events the slowest of them has not read yet. */
  readers(): { count: number; lag: number } {
    const { size: count } = this.#readers;
    if (count === 0) return { count, lag: 0 };
    const slowest = Math.min(...[...this.#readers].map(({ at }) => at));
    return { count, lag: Math.max(0, this.#outbox.newest() - slowest) };
  }

  async *#read(
    filter: StreamFilter,
    { since, tail, position }: StreamStart & { position: Position },
    { follow, signal }: { follow: boolean; signal: AbortSignal },
  ): AsyncGenerator<(Told | Gap | Position)[], void> {
    let wake = (): void => {};
    let current = filter;
    const end = (): void => wake();
    signal.addEventListener("abort", end, { once: true });
    try {
      let { at } = position;
      if (since !== undefined) {
        const gap = this.#gapAfter(since, at);
        if (gap !== undefined) yield [gap];
        at = gap?.until ?? since;
      } else if (tail !== undefined && tail > 0) {
        yield (await this.#last(filter, { wanted: tail, until: at, signal })).map(told);
      }
      position.at = at;
      yield [{ at }];
      while (!signal.aborted) {
        const events = this.#after(at);
        const last = events.at(-1);
        if (last === undefined) {
          if (!follow) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
            this.#waiting.add(wake);
          });
          continue;
        }
        at = last.event.sequence;
        const passed: Told[] = [];
        for (const one of events) {
          if (passes(one.event, current)) passed.push(one);
          current = filterAfter(one.event, current);
        }
        yield passed;
        // The reader has taken them.
        position.at = at;
        if (events.length === BATCH) await setImmediate();
      }
    } finally {
      signal.removeEventListener("abort", end);
      this.#waiting.delete(wake);
    }
  }

  /** Lets readers wait for good. Their signals end them. */
  close(): void {
    this.#unsubscribe();
  }

  /** The last events up to a number that pass, as many as are wanted, oldest first. */
  async #last(
    filter: StreamFilter,
    { wanted, until, signal }: { wanted: number; until: number; signal: AbortSignal },
  ): Promise<StreamEvent[]> {
    const found: StreamEvent[] = [];
    let before = until + 1;
    while (found.length < wanted && !signal.aborted) {
      const events = this.#outbox.before(before, filter, BATCH);
      const last = events.at(-1);
      if (last === undefined) break;
      before = last.sequence;
      found.push(...events.filter((event) => passes(event, filter)));
      if (events.length === BATCH) await setImmediate();
    }
    return found.slice(0, wanted).toReversed();
  }

  /** Zero asks for everything that is kept, and nothing of that is missing. A number from another platform's future is one. */
  #gapAfter(since: number, newest: number): Gap | undefined {
    if (since > newest) return { after: newest, until: newest };
    const before = (this.#outbox.oldest() ?? newest + 1) - 1;
    if (since >= before) return undefined;
    return since === 0 ? undefined : { after: since, until: before };
  }

  #after(sequence: number): Told[] {
    const [first] = this.#remembered;
    if (first !== undefined && sequence >= first.event.sequence - 1)
      return this.#remembered.filter(({ event }) => event.sequence > sequence).slice(0, BATCH);
    return this.#outbox.after(sequence, BATCH).map(told);
  }

  async #tell(): Promise<void> {
    try {
      this.#remember();
    } catch {
      // The database cannot be read: readers will find that out, and connect again.
      this.#remembered = [];
    }
    if (this.#telling) return;
    this.#telling = true;
    const pauseMs = Math.min(Math.max(PAUSE_MS, this.#readers.size * PAUSE_PER_READER_MS), MAX_PAUSE_MS);
    this.#wakeReaders();
    await delay(pauseMs, undefined, { ref: false });
    this.#telling = false;
    // What came meanwhile.
    this.#wakeReaders();
  }

  #remember(): void {
    const last = this.#remembered.at(-1)?.event.sequence ?? this.#outbox.newest() - 1;
    const fresh = this.#outbox.after(last, REMEMBERED).map(told);
    this.#remembered = [...this.#remembered, ...fresh].slice(-REMEMBERED);
  }

  #wakeReaders(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}

function told(event: StreamEvent): Told {
  return { event, text: serverSent({ id: event.sequence, type: event.type, data: textOf(event) }) };
}
