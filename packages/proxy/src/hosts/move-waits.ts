/** Requests whose machine has moved, until this host has heard where to. */

/**
 * How long they wait, in milliseconds. What the hosts agreed on arrives within some milliseconds, unless this host has lost
 * its connection to the directory.
 */
const PATIENCE_MS = 2_000;

export class MoveWaits {
  readonly #looks = new Set<() => void>();

  /** Resolves once `moved` returns true, which is asked at every {@link look}, or after a moment. Rejects with the signal's reason. */
  wait(moved: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        this.#looks.delete(look);
        settle();
      };
      const look = () => void (moved() && end(resolve));
      const abort = () => end(() => reject(signal.reason as Error));
      const timer = setTimeout(() => end(resolve), PATIENCE_MS);
      this.#looks.add(look);
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
      else look();
    });
  }

  /** Something has changed. */
  look(): void {
    for (const look of [...this.#looks]) look();
  }
}
