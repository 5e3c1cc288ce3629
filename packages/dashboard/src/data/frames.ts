/** Tells listeners of changes at most once per frame, however many there are. */

type Listener = () => void;

/** A page that changes more often than this costs more to draw, and is not easier to follow, in milliseconds. */
const LEAST_MS = 60;

/** Runs a function before a frame, and the next one not before {@link LEAST_MS} have passed. For one caller. */
export function pacedFrames(
  frame: (run: (now: number) => void) => void,
  wait: (run: () => void, ms: number) => void,
  now: () => number,
): (run: () => void) => void {
  let last = -Infinity;
  return (run) => {
    const next = () =>
      frame((at) => {
        last = at;
        run();
      });
    const left = last + LEAST_MS - now();
    if (left > 0) wait(next, left);
    else next();
  };
}

/** Topics with their listeners. A topic is a name such as `machine:3f9c01ab22de41`. */
export class Topics {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #versions = new Map<string, number>();
  readonly #pending = new Set<string>();
  readonly #schedule: (run: () => void) => void;
  #scheduled = false;

  /** @param schedule runs a function before the next frame; a page in the background has none until it is shown */
  constructor(schedule: (run: () => void) => void) {
    this.#schedule = schedule;
  }

  /** Counts the changes of a topic. */
  version(topic: string): number {
    return this.#versions.get(topic) ?? 0;
  }

  /** Says that a topic changed. Its listeners are told with the next frame. */
  change(topic: string): void {
    this.#versions.set(topic, this.version(topic) + 1);
    if (!this.#listeners.has(topic)) return;
    this.#pending.add(topic);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#schedule(() => this.#tell());
  }

  /** Calls back when a topic has changed. Returns a function that ends that. */
  listen(topic: string, listener: Listener): () => void {
    const all = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, all.add(listener));
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#listeners.get(topic) === all) this.#listeners.delete(topic);
    };
  }

  #tell(): void {
    this.#scheduled = false;
    const topics = [...this.#pending];
    this.#pending.clear();
    for (const topic of topics) for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener();
  }
}
