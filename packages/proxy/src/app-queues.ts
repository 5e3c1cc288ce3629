/** The queues of all apps that have requests waiting. */
import { type Lane, type QueueLimits, type Wait, WaitingQueue } from "./queue.ts";

export class AppQueues<T> {
  readonly #limits: QueueLimits;
  readonly #queues = new Map<string, WaitingQueue<T>>();

  readonly #hint: (app: string) => string;

  /** `hint` is that of {@link WaitingQueue}, for an app. */
  constructor(limits: QueueLimits, hint: (app: string) => string) {
    this.#limits = limits;
    this.#hint = hint;
  }

  /** Whether requests of the app wait in this lane. */
  waitsIn(app: string, lane: Lane): boolean {
    const queue = this.#queues.get(app);
    return queue !== undefined && queue.sizeOf(lane) > 0;
  }

  /** Whether a request of the app waits that this machine might take, which has these TCP ports. */
  needs(app: string, machine: string, ports: readonly number[]): boolean {
    return [undefined, machine, ...ports].some((lane) => this.waitsIn(app, lane));
  }

  /** How many requests wait, by app. */
  sizes(): Map<string, number> {
    return new Map([...this.#queues].map(([app, queue]) => [app, queue.size]));
  }

  /** Adds a request to the app's queue, as {@link WaitingQueue.wait} describes, and tries to serve the queue. */
  wait(app: string, request: Wait<T>): Promise<T> {
    const queue = this.#queues.get(app) ?? new WaitingQueue<T>(app, this.#limits, () => this.#hint(app));
    this.#queues.set(app, queue);
    const waiting = queue.wait(request);
    // What the request waits for may already be there.
    this.serve(app);
    return waiting;
  }

  /** Serves the app's requests in order, as far as machines can take them. */
  serve(app: string): void {
    const queue = this.#queues.get(app);
    queue?.serve();
    if (queue?.size === 0) this.#queues.delete(app);
  }

  rejectAll(error: Error): void {
    for (const queue of this.#queues.values()) queue.rejectAll(error);
  }
}
