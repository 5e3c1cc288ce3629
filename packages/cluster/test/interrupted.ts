/** A directory that a test puts out of reach, as a partition of the network does for one host. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Change, Condition, Directory, Lease } from "../src/contract.ts";

export class Interrupted implements Directory {
  readonly #directory: Directory;
  #cut = new AbortController();

  constructor(directory: Directory) {
    this.#directory = directory;
  }

  /** From now on, nothing answers, and watches are lost. */
  cut(): void {
    this.#cut.abort(away());
  }

  /** The directory answers again. */
  mend(): void {
    if (this.#cut.signal.aborted) this.#cut = new AbortController();
  }

  async get(key: string, signal?: AbortSignal) {
    this.#require();
    return this.#directory.get(key, signal);
  }

  async list(prefix: string, signal?: AbortSignal) {
    this.#require();
    return this.#directory.list(prefix, signal);
  }

  async transact(conditions: readonly Condition[], changes: readonly Change[], signal?: AbortSignal) {
    this.#require();
    return this.#directory.transact(conditions, changes, signal);
  }

  async *watch(prefix: string, after: number, signal: AbortSignal) {
    this.#require();
    const cut = this.#cut.signal;
    yield* this.#directory.watch(prefix, after, AbortSignal.any([signal, cut]));
    if (cut.aborted && !signal.aborted) throw away();
  }

  async lease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    this.#require();
    const lease = await this.#directory.lease(ttlMs, signal);
    const checked = async <T>(work: () => Promise<T>) => {
      this.#require();
      return work();
    };
    return {
      ...lease,
      renew: (renewSignal) => checked(() => lease.renew(renewSignal)),
      revoke: (revokeSignal) => checked(() => lease.revoke(revokeSignal)),
    };
  }

  close() {
    return this.#directory.close();
  }

  #require(): void {
    this.#cut.signal.throwIfAborted();
  }
}

function away(): HibernautError {
  return new HibernautError("unavailable", "The cluster directory does not answer.");
}
