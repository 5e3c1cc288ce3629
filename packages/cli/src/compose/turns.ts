/** Who comes next of the services that could start now. */
import { addAbortListener } from "node:events";
import type { ServicePlan } from "@hibernaut/compose";

/** Returns how many services at most wait for each other behind each of them: 0 for one that none waits for. Pure. */
export function chainsBehind(apps: readonly Pick<ServicePlan, "service" | "dependsOn">[]): Map<string, number> {
  const behind = new Map(apps.map(({ service }) => [service, 0]));
  // Each comes after those that it depends on.
  for (const { service, dependsOn } of apps.toReversed())
    for (const { service: before } of dependsOn)
      behind.set(before, Math.max(behind.get(before) ?? 0, (behind.get(service) ?? 0) + 1));
  return behind;
}

interface Waiting {
  rank: number;
  turn: PromiseWithResolvers<void>;
}

/** Lets a number of pieces of work run at once. The one with the highest rank is next; of equals the first that came. */
export class Turns {
  #free: number;
  readonly #waiting = new Set<Waiting>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Rejects with the signal's reason when it is aborted before the turn comes. */
  async run<T>(rank: number, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const own: Waiting = { rank, turn: Promise.withResolvers() };
    this.#waiting.add(own);
    this.#arrange();
    try {
      using _ = addAbortListener(signal, () => own.turn.reject(signal.reason));
      await own.turn.promise;
      return await work();
    } finally {
      // One that still waits has had no turn.
      if (!this.#waiting.delete(own)) this.#free += 1;
      this.#arrange();
    }
  }

  /** A moment later: what could start only now has come by then. */
  #arrange(): void {
    setImmediate(() => {
      const next = [...this.#waiting].toSorted((a, b) => b.rank - a.rank).slice(0, this.#free);
      for (const one of next) {
        this.#free -= 1;
        this.#waiting.delete(one);
        one.turn.resolve();
      }
    });
  }
}
