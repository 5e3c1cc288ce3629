/** Shares one job among all callers that ask for the same thing at the same time. */
import { abortable } from "@hibernaut/lib/async";
import { cancelled } from "./tools.ts";

/** What a job gets: a signal that is aborted when the last waiter leaves, and a way to report progress to all of them. */
export interface Job<Progress> {
  signal: AbortSignal;
  report(progress: Progress): void;
}

interface Waiter<Progress> {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
}

interface Running<Result, Progress> {
  promise: Promise<Result>;
  abort: AbortController;
  waiters: Set<Waiter<Progress>>;
  last?: Progress;
}

/** Jobs by key. A waiter that gives up leaves alone; the last one to leave cancels the job. */
export class SharedJobs<Result, Progress> {
  readonly #running = new Map<string, Running<Result, Progress>>();

  /**
   * Waits for the running job of that key, or starts it. Rejects like the job, or with an `AbortError` when
   * `options.signal` is aborted. The last waiter to leave waits until the job has ended, so no work is left behind.
   */
  async join(key: string, start: (job: Job<Progress>) => Promise<Result>, options: Waiter<Progress>): Promise<Result> {
    const { signal } = options;
    if (signal?.aborted) throw cancelled();
    // A copy: two calls with the same options object are still two waiters.
    const waiter = { ...options };
    const running = this.#running.get(key) ?? this.#start(key, start);
    running.waiters.add(waiter);
    if (running.last !== undefined) waiter.onProgress?.(running.last);
    try {
      return await (signal === undefined ? running.promise : abortable(running.promise, signal));
    } catch (error) {
      running.waiters.delete(waiter);
      if (!signal?.aborted) throw error;
      if (running.waiters.size > 0) throw cancelled();
      // The next caller must not join a job that is being cancelled.
      this.#forget(key, running);
      running.abort.abort(cancelled());
      await running.promise;
      throw cancelled();
    } finally {
      running.waiters.delete(waiter);
    }
  }

  #start(key: string, start: (job: Job<Progress>) => Promise<Result>): Running<Result, Progress> {
    const abort = new AbortController();
    const waiters = new Set<Waiter<Progress>>();
    const report = (progress: Progress) => {
      running.last = progress;
      for (const waiter of waiters) waiter.onProgress?.(progress);
    };
    // Started in a later turn, so that `running` exists when the job reports for the first time.
    const promise = Promise.resolve().then(() => start({ signal: abort.signal, report }));
    const running: Running<Result, Progress> = { promise, abort, waiters };
    this.#running.set(key, running);
    const forget = () => this.#forget(key, running);
    promise.then(forget, forget);
    return running;
  }

  #forget(key: string, running: Running<Result, Progress>): void {
    if (this.#running.get(key) === running) this.#running.delete(key);
  }
}
