/** The work of one machine: one thing at a time, in order. */

/** Work that decides about its machine, for as long as nothing takes its place. */
export interface Task {
  /** Aborted when the work is cancelled or something else takes its place. */
  readonly signal: AbortSignal;
  /** False once something else has taken its place. */
  readonly current: boolean;
}

export class WorkQueue {
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #current: AbortController | undefined;

  /** How much work is in progress or waits. */
  get length(): number {
    return this.#waiting;
  }

  /** Whether work that decides about the machine is in progress. */
  get busy(): boolean {
    return this.#current !== undefined;
  }

  /**
   * Queues work in the place of the current one, which is told to end with `reason` unless `patient`. Resolves with
   * false when something else took the place of the work before it began; otherwise settles as the work does.
   */
  async replace(
    work: (task: Task) => Promise<void>,
    { reason, patient = false }: { reason: string; patient?: boolean },
  ): Promise<boolean> {
    if (!patient) this.cancel(reason);
    const abort = new AbortController();
    this.#current = abort;
    const isCurrent = () => this.#current === abort;
    const task: Task = {
      signal: abort.signal,
      get current() {
        return isCurrent();
      },
    };
    return this.#add(async () => {
      if (!isCurrent()) return false;
      try {
        await work(task);
      } finally {
        if (isCurrent()) this.#current = undefined;
      }
      return true;
    });
  }

  /** Queues work that takes nothing's place and that nothing takes the place of. */
  async add(work: () => Promise<void>): Promise<void> {
    await this.#add(work);
  }

  /** Tells the current work to end; its outcome still counts. */
  cancel(reason: string): void {
    this.#current?.abort(new Error(reason));
  }

  /** Tells the current work to end; its outcome no longer counts. */
  abandon(reason: string): void {
    this.cancel(reason);
    this.#current = undefined;
  }

  /** Resolves when nothing is in progress. */
  async drained(): Promise<void> {
    while (this.#waiting > 0) await this.#tail;
  }

  #add<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const done = this.#tail.then(work).finally(() => (this.#waiting -= 1));
    this.#tail = done.catch(() => {}); // the caller that queued the work hears of it
    return done;
  }
}
