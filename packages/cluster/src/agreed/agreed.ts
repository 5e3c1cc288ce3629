/**
 * Changes of the records that all hosts share: apps, hostnames, tokens, secrets and releases. A change is worked out on
 * this host's copy by the same rules as on a host alone, and made in one transaction that fails if something it rests on
 * has changed meanwhile; then it is worked out again.
 */
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { Cluster } from "../cluster.ts";
import { KEYS } from "../keys.ts";
import { Catching } from "./catching.ts";
import type { AgreedCopy } from "./copy.ts";
import { Draft } from "./draft.ts";

/** Conflicts are rare: someone else must change the same record within milliseconds, each time. */
const MAX_ATTEMPTS = 10;
/** After a conflict, in milliseconds, times a random number up to the attempt's: those who collide do not do so again. */
const CONFLICT_PAUSE_MS = 10;
/** How long the directory may take for a change. Its own time-out is shorter; this one ends what hangs in between. */
const WRITE_TIMEOUT_MS = 10_000;

interface AgreedOptions {
  cluster: Pick<Cluster, "directory" | "view">;
  copy: AgreedCopy;
}

export class Agreed {
  readonly #options: AgreedOptions;
  readonly #catching: Catching;

  constructor(options: AgreedOptions) {
    this.#options = options;
    this.#catching = new Catching(options.cluster);
  }

  /** Resolves once this host's copy has all changes that ended before the call, or soon, when the directory does not answer. */
  catchUp(): Promise<void> {
    return this.#catching.catchUp();
  }

  /**
   * Makes what `work` puts into a draft, all or nothing. `work` may be called several times, and its last result is
   * returned. Rejects with what it throws, with `aborted` after too many conflicts, and with `unavailable` when the
   * directory does not answer: `details.ambiguous` says that the change may have been made.
   */
  async change<T>(work: (draft: Draft) => T | Promise<T>): Promise<T> {
    this.#requireReady();
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const draft = new Draft(this.#options.copy);
      const result = await this.#tried(work, draft, attempt);
      if (result === undefined) continue;
      if (draft.isEmpty || (await this.#make(draft))) return result.value;
      // What the draft counted may have changed as well, and not only what it rests on.
      await this.catchUp();
      await this.#refresh(draft);
      await delay(Math.random() * attempt * CONFLICT_PAUSE_MS);
    }
    throw new HibernautError(
      "aborted",
      "Other clients kept changing the same record at the same moment, so nothing was changed. Try again.",
    );
  }

  /** What a copy that is some milliseconds old refuses may be right by now: undefined then, the first time. */
  async #tried<T>(
    work: (draft: Draft) => T | Promise<T>,
    draft: Draft,
    attempt: number,
  ): Promise<{ value: T } | undefined> {
    try {
      return { value: await work(draft) };
    } catch (error) {
      if (attempt > 1 || !isHibernautError(error, "not_found", "already_exists", "failed_precondition")) throw error;
      await this.catchUp();
      return undefined;
    }
  }

  async #make(draft: Draft): Promise<boolean> {
    const { cluster, copy } = this.#options;
    const { conditions, changes } = draft;
    const signal = within(new AbortController().signal, WRITE_TIMEOUT_MS, "the cluster directory");
    const revision = await cluster.directory.transact(conditions, changes, signal).catch((error: unknown) => {
      throw ambiguous(error);
    });
    if (revision === undefined) return false;
    copy.adopt(changes.map(({ key, value }) => ({ key, value, revision })));
    return true;
  }

  /** Reads what the draft rests on, because the watch may need some milliseconds more. */
  async #refresh(draft: Draft): Promise<void> {
    const { cluster, copy } = this.#options;
    for (const { key } of draft.conditions) {
      const { entries, revision } = await cluster.directory.list(key);
      const found = entries.find((entry) => entry.key === key);
      copy.adopt([found ?? { key, value: null, revision }]);
    }
  }

  #requireReady(): void {
    const { copy, cluster } = this.#options;
    if (copy.ready && cluster.view.value(KEYS.cluster) !== undefined) return;
    throw new HibernautError(
      "unavailable",
      "The cluster directory has not answered since this host started, so nothing that the hosts share can be changed. Nothing was changed. See `hibernaut cluster status`.",
    );
  }
}

function ambiguous(error: unknown): unknown {
  if (isHibernautError(error) && error.code !== "unavailable") return error;
  return new HibernautError(
    "unavailable",
    `The cluster directory did not confirm the change (${messageOf(error)}). It may have been made or not: look before you try again.`,
    { ambiguous: true },
    { cause: error },
  );
}
