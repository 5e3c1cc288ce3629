/** Reads a set from a target without a platform: what a restore onto a bare host needs. */
import { HibernautError } from "@hibernaut/domain/errors";
import { openAccess, type ResticPlace, type TargetSecrets } from "./access.ts";
import { parseLocation } from "./location.ts";
import { appsOf, type Manifest, sizeOf } from "./manifest.ts";
import { compared, Repository } from "./repository.ts";
import { fileOf } from "./set-writer.ts";
import { newestAt, newestFirst } from "./sets.ts";

export { asRestored, TARGETS_FILE } from "./target-file.ts";
export { appsOf, sizeOf };

/** An error names as many sets as this, the newest: no platform runs that could be asked for a list. */
const MOST_NAMED = 20;

/** Which set to restore. By default, the newest. */
export interface Choice {
  /** The name of a set. */
  set?: string | undefined;
  /** The newest that was made then or before, in milliseconds since 1970. */
  at?: number | undefined;
}

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

  /**
   * Returns the manifest of the set to restore. Rejects with `not_found` when there is none, and with `failed_precondition` when the
   * target has sets of several platforms and nothing says which one is meant.
   */
  async choose({ set, at = Number.POSITIVE_INFINITY }: Choice, signal: AbortSignal): Promise<Manifest> {
    const snapshots = await this.#repository.snapshots(signal);
    const there = new Set(snapshots.map(({ id }) => id));
    const read = await this.#repository.manifests(snapshots, signal);
    const readable = read.flatMap(({ manifest }) => (typeof manifest === "object" ? [manifest] : []));
    const whole = readable.filter(({ pieces }) => pieces.every(({ snapshot }) => there.has(snapshot)));
    const platforms = new Set(whole.map(({ platform }) => platform));
    if (set === undefined && platforms.size > 1) {
      const message = `The target has sets of ${platforms.size} platforms. Name the set to restore with --set. ${knownSets(whole)}`;
      throw new HibernautError("failed_precondition", message);
    }
    const chosen = set === undefined ? newestAt(whole, at) : whole.find((manifest) => manifest.set === set);
    if (chosen !== undefined) return chosen;
    const which = set === undefined ? "no set that is complete and old enough" : `no complete set ${set}`;
    throw new HibernautError("not_found", `The target has ${which}. ${knownSets(whole)}`);
  }

  /**
   * Yields the pieces of a set as tar archives, in the order in which they have to be extracted. Each has to be read before the
   * next, and throws at its end if it is not what was stored.
   */
  async *pieces({ pieces }: Manifest, signal: AbortSignal): AsyncGenerator<AsyncIterable<Buffer>, void> {
    for (const piece of pieces) {
      const file = fileOf(piece);
      yield compared(this.#repository.read(piece.snapshot, file, signal), { ...piece, file });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}

function knownSets(whole: readonly Manifest[]): string {
  if (whole.length === 0) return "Nothing in it is complete.";
  const named = newestFirst(whole).slice(0, MOST_NAMED);
  const more = whole.length > named.length ? `, and ${whole.length - named.length} older ones` : "";
  return `It has ${named.map(({ set, host }) => `${set} of ${host}`).join(", ")}${more}.`;
}
