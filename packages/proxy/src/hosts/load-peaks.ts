/** What is told of loads that change with every request: rises at once, falls later, and nothing while they are steady. */
import { coarseLoad } from "./load-steps.ts";

/** A load that has been lower for this long, in milliseconds, is told: a busy machine is idle between two requests. */
const FALL_MS = 2_000;

interface Load {
  now: number;
  /** The highest one since the last look. */
  peak: number;
  /** What was told last. */
  told: number;
}

export class LoadPeaks {
  readonly #onChange: (id: string) => void;
  readonly #loads = new Map<string, Load>();
  #timer: NodeJS.Timeout | undefined;

  /** @param onChange what is told of a machine has changed */
  constructor(onChange: (id: string) => void) {
    this.#onChange = onChange;
  }

  /** Returns what is told of a machine's load. */
  told(id: string): number {
    return this.#loads.get(id)?.told ?? 0;
  }

  set(id: string, load: number, softLimit: number): void {
    const now = coarseLoad(load, softLimit);
    const known = this.#loads.get(id) ?? { now: 0, peak: 0, told: 0 };
    known.now = now;
    known.peak = Math.max(known.peak, now);
    this.#loads.set(id, known);
    if (now > known.told) {
      known.told = now;
      this.#onChange(id);
    }
    this.#timer ??= setTimeout(() => this.look(), FALL_MS).unref();
  }

  delete(id: string): void {
    this.#loads.delete(id);
  }

  /** Tells which loads have fallen since the last look. */
  look(): void {
    this.close();
    for (const [id, load] of this.#loads) {
      const fallen = load.peak < load.told;
      load.told = load.peak;
      load.peak = load.now;
      if (fallen) this.#onChange(id);
      if (load.told === 0 && load.now === 0) this.#loads.delete(id);
    }
    if (this.#loads.size > 0) this.#timer = setTimeout(() => this.look(), FALL_MS).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
