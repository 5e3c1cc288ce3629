/** What waits to be delivered to one webhook: in order within a lane, lanes apart from each other. Pure except for its state. */
import type { PendingDelivery } from "@hibernaut/domain/webhook";

interface Lane {
  /** The first is the next to be delivered. */
  waiting: PendingDelivery[];
  /** Whether the first is being delivered. */
  busy: boolean;
  /** How often the receiver had answered when the first failed for the first time. Undefined if it has not failed. */
  failedAfter: number | undefined;
}

/** The lanes of one webhook. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  #size = 0;
  #answers = 0;

  /** How many deliveries wait or are made. */
  get size(): number {
    return this.#size;
  }

  /** Adds a delivery, behind those of its lane. */
  add({ sequence, lane: name, attempts, nextAt }: PendingDelivery): void {
    const lane = this.#lanes.get(name) ?? { waiting: [], busy: false, failedAfter: undefined };
    this.#lanes.set(name, lane);
    lane.waiting.push({ sequence, lane: name, attempts, nextAt });
    // It failed before the platform started.
    if (lane.waiting.length === 1 && attempts > 0) lane.failedAfter = 0;
    this.#size += 1;
  }

  /** Returns the oldest delivery that is due and first in its lane, which is busy from then on. */
  take(now: number): PendingDelivery | undefined {
    let oldest: { first: PendingDelivery; lane: Lane } | undefined;
    for (const { first, lane } of this.#firsts())
      if (first.nextAt <= now && (oldest === undefined || first.sequence < oldest.first.sequence))
        oldest = { first, lane };
    if (oldest !== undefined) oldest.lane.busy = true;
    return oldest?.first;
  }

  /** Ends the delivery that the lane is busy with. */
  done(name: string): void {
    const lane = this.#lanes.get(name);
    if (lane === undefined) return;
    lane.waiting.shift();
    lane.busy = false;
    lane.failedAfter = undefined;
    this.#size -= 1;
    if (lane.waiting.length === 0) this.#lanes.delete(name);
  }

  /** Lets the delivery that the lane is busy with wait, and with it the lane. */
  retry(name: string, { nextAt, attempts }: { nextAt: number; attempts: number }): void {
    const lane = this.#lanes.get(name);
    const [first] = lane?.waiting ?? [];
    if (lane === undefined || first === undefined) return;
    lane.waiting[0] = { ...first, attempts, nextAt };
    lane.busy = false;
    lane.failedAfter ??= this.#answers;
  }

  /**
   * Notes that the receiver has accepted something. What has failed only since the last time is due: the receiver was
   * away. What failed while others were accepted is not due before its time.
   */
  answered(now: number): void {
    for (const { first, lane } of this.#firsts())
      if (lane.failedAfter === this.#answers) lane.waiting[0] = { ...first, nextAt: Math.min(first.nextAt, now) };
    this.#answers += 1;
  }

  /** When the next delivery is due that is not being made, in milliseconds since 1970. */
  nextDue(): number | undefined {
    let due: number | undefined;
    for (const { first } of this.#firsts()) due = Math.min(due ?? first.nextAt, first.nextAt);
    return due;
  }

  *#firsts(): Generator<{ first: PendingDelivery; lane: Lane }> {
    for (const lane of this.#lanes.values()) {
      const [first] = lane.waiting;
      if (!lane.busy && first !== undefined) yield { first, lane };
    }
  }
}
