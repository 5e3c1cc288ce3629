/** Reads a set from a target without a platform: what a restore onto a bare host needs. */
import { HibernautError } from "@hibernaut/domain/errors";
import { openAccess, type ResticPlace, type TargetSecrets } from "./access.ts";
import { type Choice, type Chosen, chooseSet, reasonsOf } from "./choose.ts";
import type { SetView } from "./contract.ts";
import { parseLocation } from "./location.ts";
import { appsOf, type Manifest, sizeOf } from "./manifest.ts";
import { Repository } from "./repository.ts";
import { setsOf } from "./sets.ts";
import { archiveOf } from "./stored-archive.ts";

export type { SetView } from "./contract.ts";
export { asRestored, TARGETS_FILE } from "./target-file.ts";
export { appsOf, reasonsOf, sizeOf };

/** A target that is only read. */
export class Source implements AsyncDisposable {
  readonly #repository: Repository;
  readonly #dispose: () => PromiseLike<void>;

  private constructor(repository: Repository, dispose: () => PromiseLike<void>) {
    this.#repository = repository;
    this.#dispose = dispose;
  }

  /** Opens a target. Rejects when there is no repository, or another key is needed. */
  static async open(url: string, secrets: TargetSecrets, place: ResticPlace, signal: AbortSignal): Promise<Source> {
    const open = await openAccess(parseLocation(url), secrets, place);
    const source = new Source(new Repository(open.access), () => open[Symbol.asyncDispose]());
    try {
      if (await source.#repository.isThere(signal)) return source;
      const message = `There is no repository at ${open.access.place}. Check the place; if it is a disk that has to be mounted, mount it.`;
      throw new HibernautError("not_found", message);
    } catch (error) {
      await source[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Lists the sets, newest first. None counts as its own: no platform asks. */
  async sets(signal: AbortSignal): Promise<SetView[]> {
    const { snapshots, manifests } = await this.#repository.all(signal);
    return setsOf(snapshots, manifests, "");
  }

  /** Returns the set to restore and the newer ones that cannot be restored. Rejects like {@link chooseSet}. */
  async choose(choice: Choice, signal: AbortSignal): Promise<Chosen> {
    const { snapshots, manifests } = await this.#repository.all(signal);
    return chooseSet(snapshots, manifests, choice);
  }

  /**
   * Yields the pieces of a set as tar archives, in the order in which they have to be extracted. Each has to be read before the
   * next, and throws at its end if it is not what was stored.
   */
  async *pieces({ pieces }: Manifest, signal: AbortSignal): AsyncGenerator<AsyncIterable<Buffer>, void> {
    for (const piece of pieces) yield archiveOf(this.#repository, piece, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}
