/** Waits until this host's view has what the directory has, for many at once. */
import { within } from "@hibernaut/lib/async";
import type { Cluster } from "../cluster.ts";
import { KEYS } from "../keys.ts";

/** How long to wait for a directory that does not answer: what this host knows is then the best there is. */
const CATCH_UP_MS = 1000;

export class Catching {
  readonly #cluster: Pick<Cluster, "directory" | "view">;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(cluster: Pick<Cluster, "directory" | "view">) {
    this.#cluster = cluster;
  }

  /**
   * Resolves once the view has everything that was written before the call, or after a second. However many wait, the
   * directory is asked by one at a time: a caller that comes while it is asked waits for the next answer.
   */
  catchUp(): Promise<void> {
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  #begin(): Promise<void> {
    this.#running = this.#ask().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #ask(): Promise<void> {
    const { directory, view } = this.#cluster;
    const signal = within(new AbortController().signal, CATCH_UP_MS, "the cluster directory");
    try {
      const { revision } = await directory.list(KEYS.cluster, signal);
      await view.reached(revision, signal);
    } catch {
      // Not in time: what this host knows is the best there is.
    }
  }
}
