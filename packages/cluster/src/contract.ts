/**
 * Where the hosts of a cluster keep what they must agree on. `etcd/` speaks to etcd; `local/` is an SQLite file, for hosts
 * that share one disk, as in tests. One conformance suite holds both to this contract.
 *
 * Everything that is written is durable when the call returns. Reads are linearizable: they see every write that ended
 * before they began. Calls reject with `unavailable` when there is no answer in time, in which case a write may have
 * taken effect or not, and with the signal's reason.
 */

/** A key with its value. */
export interface Entry {
  readonly key: string;
  /** JSON, as {@link keys.ts} describes it. */
  readonly value: string;
  /** The revision of the directory at which the key got this value. Revisions count up over all keys, from 1. */
  readonly revision: number;
}

/** What must be true for a transaction to take effect: the key has not changed since `revision`; 0: there is no such key. */
export interface Condition {
  readonly key: string;
  readonly revision: number;
}

/** What a transaction does to one key. Null deletes it. */
export interface Change {
  readonly key: string;
  readonly value: string | null;
  /** The key goes when this lease ends. */
  readonly lease?: Lease | undefined;
}

/** A time during which keys live, unless it is renewed. */
export interface Lease {
  readonly id: string;
  /** From each renewal, in milliseconds. The directory may give more than was asked for. */
  readonly ttlMs: number;
  /** Resolves with whether the lease still exists; false: it has ended for good, and its keys are gone. */
  renew(signal: AbortSignal): Promise<boolean>;
  /** Ends the lease and deletes its keys. */
  revoke(signal: AbortSignal): Promise<void>;
}

/** A key that was written, or deleted (`value` null). `revision` is that of the change. */
export interface Changed {
  readonly key: string;
  readonly value: string | null;
  readonly revision: number;
}

/** All keys of a prefix at one moment, sorted. */
export interface Listing {
  readonly entries: readonly Entry[];
  /** The revision of the directory at that moment: a watch after it misses nothing. */
  readonly revision: number;
}

export interface Directory {
  get(key: string, signal?: AbortSignal): Promise<Entry | undefined>;
  list(prefix: string, signal?: AbortSignal): Promise<Listing>;
  /**
   * Makes all changes at once, if all conditions are true. Resolves with the revision of the changes; undefined when a
   * condition is not true, and nothing has changed. Deleting a key that does not exist changes nothing. No key may be
   * changed twice. Throws {@link LeaseGone} when a key is to live with a lease that has ended.
   */
  transact(
    conditions: readonly Condition[],
    changes: readonly Change[],
    signal?: AbortSignal,
  ): Promise<number | undefined>;
  /**
   * Yields the changes of keys of a prefix after a revision, in order, those of one transaction together. The first list
   * may be empty: it says that the watch is connected. Ends when the signal aborts. Throws {@link HistoryGone} when changes after the revision are forgotten: list again. Throws
   * `unavailable` when the connection is lost: watch again from the last revision seen.
   */
  watch(prefix: string, after: number, signal: AbortSignal): AsyncIterable<readonly Changed[]>;
  lease(ttlMs: number, signal?: AbortSignal): Promise<Lease>;
  /** Closes connections. Leases end by themselves. */
  close(): Promise<void>;
}

/** The directory no longer knows what changed since a revision. */
export class HistoryGone extends Error {
  override name = "HistoryGone";
}

/** A lease has ended, and its keys are gone. */
export class LeaseGone extends Error {
  override name = "LeaseGone";
}
