/** The clock of deliveries, which tests replace: a day passes at once there. */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls once after that time. Returns a function that prevents it. */
  later(ms: number, call: () => void): () => void;
}

/** The host's clock. */
export const HOST_CLOCK: Clock = {
  now: Date.now,
  later(ms, call) {
    const timer = setTimeout(call, ms).unref();
    return () => clearTimeout(timer);
  },
};
