/** One job for everybody who asks for the same thing at the same time. */
import { cancelled } from "./tools.ts";

/** What a job is given: cancelled when nobody waits any more, and a way to report progress to all who do. */
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

  /** Whether a job of that key is under way. */
  has(key: string): boolean {
    return this.#running.has(key);
  }

  /**
   * Waits for the running job of that key, or starts it. Rejects as the job does, or with an `AbortError`
   * when `options.signal` fires. Resolves only after the job has ended, so nothing of it runs on unseen.
   */
  async join(key: string, start: (job: Job<Progress>) => Promise<Result>, options: Waiter<Progress>): Promise<Result> {
    if (options.signal?.aborted) throw cancelled();
    // A copy: two calls may share one options object and still are two waiters.
    const waiter = { ...options };
    const running = this.#running.get(key) ?? this.#start(key, start);
    running.waiters.add(waiter);
    if (running.last !== undefined) waiter.onProgress?.(running.last);
    let leave: (() => void) | undefined;
    const left = new Promise<never>((_, reject) => {
      leave = () => {
        running.waiters.delete(waiter);
        if (running.waiters.size > 0) {
          reject(cancelled());
          return;
        }
        // A job that is ending may not be joined by the next caller: it would be told of a cancellation it did not ask for.
        this.#forget(key, running);
        running.abort.abort(cancelled());
        running.promise.then(() => reject(cancelled()), reject);
      };
      waiter.signal?.addEventListener("abort", leave);
    });
    try {
      return await Promise.race([running.promise, left]);
    } finally {
      running.waiters.delete(waiter);
      if (leave) waiter.signal?.removeEventListener("abort", leave);
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
