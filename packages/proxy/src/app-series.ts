/** Which apps have series in the proxy's metrics: those that exist, and a limited number that are gone. */

/**
 * How many apps that no longer exist keep their series. A deploy may take an app's last machine away for a moment, and
 * its counters should not begin again; a program that makes an app for each of its runs must not make series without end.
 */
export const MOST_GONE_APPS = 200;

/** Remembers the apps that were counted, and forgets those that are gone, the ones that came first before the others. */
export class AppSeries {
  readonly #counted = new Set<string>();

  /** The app gets a series, unless it has some. */
  add(app: string): void {
    this.#counted.add(app);
  }

  /** Calls `forget` with apps that are gone, as many as there are too many of. */
  prune(exists: (app: string) => boolean, forget: (app: string) => void): void {
    const gone = [...this.#counted].filter((app) => !exists(app));
    for (const app of gone.slice(0, Math.max(0, gone.length - MOST_GONE_APPS))) {
      this.#counted.delete(app);
      forget(app);
    }
  }
}
