/** Whose build works when: some at once, fewer of one app, so that none keeps others from building. */
import { Semaphore } from "@hibernaut/lib/semaphore";
import { Refusal } from "../failure.ts";
import { MOST_AT_ONCE, MOST_AT_ONCE_OF_APP, MOST_OF_APP, MOST_WAITING } from "./limits.ts";

export class Turns {
  readonly #all = new Semaphore(MOST_AT_ONCE);
  readonly #apps = new Map<string, { turns: Semaphore; count: number }>();
  #count = 0;

  /** Throws a {@link Refusal} with 429 when no more can wait. */
  requireRoom(app: string): void {
    if ((this.#apps.get(app)?.count ?? 0) >= MOST_OF_APP)
      throw new Refusal(429, `${MOST_OF_APP} builds of this app are not finished. Wait until one is.`);
    if (this.#count >= MOST_AT_ONCE + MOST_WAITING)
      throw new Refusal(429, "Too many builds of all apps wait for their turn. Try again in some minutes.");
  }

  /** Works when it is the turn. Rejects with the signal's reason when it is aborted while waiting. */
  async run(app: string, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const own = this.#apps.get(app) ?? { turns: new Semaphore(MOST_AT_ONCE_OF_APP), count: 0 };
    this.#apps.set(app, own);
    own.count += 1;
    this.#count += 1;
    try {
      // Only one that its app has a turn for waits with those of others.
      await own.turns.run(() => this.#all.run(work, signal), signal);
    } finally {
      own.count -= 1;
      this.#count -= 1;
      if (own.count === 0) this.#apps.delete(app);
    }
  }
}
