/** Promises that an abort signal can cut short. */

/** Waits for the promise. Rejects with the signal's reason when the signal is aborted first. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) {
      promise.catch(() => {}); // as after a later abort, how the promise ends is of no interest any more
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Resolves when the signal is aborted. Never rejects. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Returns a signal that follows `signal` and is aborted after `milliseconds`. `what` names in the error what took too long. */
export function within(signal: AbortSignal, milliseconds: number, what: string): AbortSignal {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`${what} took longer than ${milliseconds} ms`)), milliseconds);
  timer.unref();
  return AbortSignal.any([signal, limit.signal]);
}

/** Returns a signal that is never aborted, for work that has to be finished. */
export function never(): AbortSignal {
  return new AbortController().signal;
}
