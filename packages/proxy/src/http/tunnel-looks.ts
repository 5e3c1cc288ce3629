/**
 * Looks at a tunnel every second: whether anything passes, and whether a side leaves bytes waiting. One timer, and a flag for
 * each piece that passes.
 */

/** Nothing passed for this long: the tunnel is quiet. Far less than any idle time, far more than a pause in a dialogue. */
const LOOK_MS = 1_000;

/** One side of a tunnel, as a place that bytes go to. */
interface Taker {
  /** How many bytes it was given in all. */
  given(): number;
  /** How many of them it has not taken. Of a socket, what the kernel's send buffer has not: see `TUNNEL_STALL_MS`. */
  waiting(): number;
}

interface LookOptions {
  client: Taker;
  upstream: Taker;
  /** How long a side may leave bytes waiting without taking one, in milliseconds. 0: without limit. */
  stallMs: number;
  /** Nothing has passed for a while, or something passes again. */
  onQuiet?: ((quiet: boolean) => void) | undefined;
  /** A side has left bytes waiting for too long. Called once. */
  onStall(side: "client" | "upstream"): void;
}

/**
 * How long a side has taken none of the bytes that wait for it. One for which nothing waits may be silent forever. One that
 * reads slowly takes a third of the kernel's send buffer at a time.
 */
export class StallClock {
  #taken = -1;
  #since = 0;

  /** Returns the time in milliseconds; 0 if nothing waits, or if it took something since the last look. */
  look({ given, waiting }: Taker, now: number): number {
    const left = waiting();
    const taken = given() - left;
    if (left === 0 || taken !== this.#taken) this.#since = now;
    this.#taken = taken;
    return now - this.#since;
  }
}

/** Looks until `end()`. Call `moved()` for each piece that passes. */
export function lookAtTunnel({ client, upstream, stallMs, onQuiet, onStall }: LookOptions): {
  moved(): void;
  end(): void;
} {
  if (onQuiet === undefined && stallMs === 0) return { moved() {}, end() {} };
  let [busy, quiet] = [true, false];
  const sides = [
    { name: "client", taker: client, clock: new StallClock() },
    { name: "upstream", taker: upstream, clock: new StallClock() },
  ] as const;
  const timer = setInterval(() => {
    if (!busy && !quiet) onQuiet?.((quiet = true));
    busy = false;
    if (stallMs === 0) return;
    const now = performance.now();
    const stalled = sides.find(({ taker, clock }) => clock.look(taker, now) >= stallMs);
    if (stalled === undefined) return;
    clearInterval(timer);
    onStall(stalled.name);
  }, LOOK_MS).unref();
  return {
    moved() {
      busy = true;
      if (quiet) onQuiet?.((quiet = false));
    },
    end: () => clearInterval(timer),
  };
}
