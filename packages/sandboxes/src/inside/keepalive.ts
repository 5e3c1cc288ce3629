/** Signs of life in a stream that is silent, so that no proxy on the way gives it up. */
import { background } from "@hibernaut/lib/background";
import { LEAST_KEEPALIVE_S } from "./limits.ts";

/** How often the client wants one, in seconds. */
export const KEEPALIVE_HEADER = "keepalive-ping-interval";

/** Passes the source on, with `sign()` whenever it was silent for this many seconds. */
export async function* keptAlive<T, S>(
  source: AsyncGenerator<T, void>,
  header: string | null,
  sign: () => S,
): AsyncGenerator<T | S, void> {
  const seconds = Number(header);
  if (header === null || !(seconds > 0)) {
    yield* source;
    return;
  }
  const ms = Math.max(LEAST_KEEPALIVE_S, seconds) * 1000;
  let next = source.next();
  try {
    for (;;) {
      const silence = Promise.withResolvers<"silent">();
      const timer = setTimeout(() => silence.resolve("silent"), Math.min(ms, 2 ** 31 - 1));
      const come = await Promise.race([next, silence.promise]).finally(() => clearTimeout(timer));
      if (come === "silent") {
        yield sign();
        continue;
      }
      if (come.done === true) return;
      next = source.next();
      next.catch(() => {}); // it is awaited above, unless the client is gone by then
      yield come.value;
    }
  } finally {
    // Ends when the source notices that its signal is aborted.
    background(source.return(), "the end of a stream");
  }
}
