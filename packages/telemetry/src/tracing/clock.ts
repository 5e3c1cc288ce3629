/** Times of spans, in milliseconds since 1970. */

/** A clock that does not jump while something is traced, when the host's is set. */
export type SpanClock = (steady?: number) => number;

/**
 * Takes the host's time now, and counts on from there. `steady` is a moment on the clock of `performance.now()`, which may
 * be in the past; by default, now.
 */
export function spanClock(): SpanClock {
  const offset = Date.now() - performance.now();
  return (steady = performance.now()) => offset + steady;
}
