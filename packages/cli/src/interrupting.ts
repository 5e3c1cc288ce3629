/** Lets a command end its work in order when it is interrupted, and remove what is half done. */
import { Interrupted } from "./failure.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Listens for interruptions until it is disposed of: the first aborts the controller with {@link Interrupted}.
 *
 * @param message what was interrupted, as a sentence
 * @example
 * using stop = interruptible("The copy was interrupted.");
 * await copy(stop.signal);
 */
export function interruptible(message: string): AbortController & Disposable {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new Interrupted(message));
  for (const signal of SIGNALS) process.once(signal, interrupt);
  return Object.assign(controller, {
    [Symbol.dispose]() {
      for (const signal of SIGNALS) process.off(signal, interrupt);
    },
  });
}
