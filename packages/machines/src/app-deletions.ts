/** Apps that are being deleted at the moment: nothing is added to them. */
import { HibernautError } from "@hibernaut/domain/errors";

/** Only for as long as it takes: a deletion that ends in the middle can be asked for again. */
export class AppDeletions {
  /** How many deletions each app has. */
  readonly #count = new Map<string, number>();

  /** Runs the deletion of an app. */
  async during<T>(app: string, work: () => Promise<T>): Promise<T> {
    this.#count.set(app, (this.#count.get(app) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#count.get(app) ?? 1) - 1;
      if (left > 0) this.#count.set(app, left);
      else this.#count.delete(app);
    }
  }

  /** Throws `aborted` while the app is being deleted. */
  requireLasting(app: string): void {
    if (!this.#count.has(app)) return;
    throw new HibernautError("aborted", `App ${app} is being deleted. Once it is gone, it can be made again.`, {
      app_name: app,
    });
  }
}
