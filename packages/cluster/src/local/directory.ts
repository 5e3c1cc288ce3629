/**
 * A cluster directory in an SQLite file, for hosts that share one disk: above all for tests, in which several hosts run
 * on one computer or in one process. Leases follow the wall clock.
 */
import { EventEmitter, once } from "node:events";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { Database } from "better-sqlite3";
import {
  type Change,
  type Changed,
  type Condition,
  type Directory,
  type Entry,
  HistoryGone,
  type Lease,
  LeaseGone,
  type Listing,
} from "../contract.ts";
import { openDirectoryFile } from "./schema.ts";

/** How often a watch looks for what other processes wrote, and for leases that ended. */
const POLL_MS = 50;
/** How many revisions a watch may be behind. A host that is further behind reads everything, which is not much. */
const HISTORY = 10_000;

/** Emits a file's path when a directory of this process has written to it. */
const writes = new EventEmitter().setMaxListeners(0);

export class LocalDirectory implements Directory {
  readonly #file: string;
  readonly #db: Database;
  readonly #history: number;
  readonly #closing = new AbortController();

  /** Opens the directory in a file, and makes it when it does not exist. `history`: how many revisions are remembered. */
  constructor(file: string, { history = HISTORY } = {}) {
    this.#file = file;
    this.#db = openDirectoryFile(file);
    this.#history = history;
  }

  async get(key: string, signal?: AbortSignal): Promise<Entry | undefined> {
    return this.#read(signal, () =>
      this.#db.prepare<[string], Entry>("SELECT key, value, revision FROM entries WHERE key = ?").get(key),
    );
  }

  async list(prefix: string, signal?: AbortSignal): Promise<Listing> {
    return this.#read(signal, () => ({
      entries: this.#db
        .prepare<[string, string], Entry>(
          "SELECT key, value, revision FROM entries WHERE key >= ? AND key < ? ORDER BY key",
        )
        .all(prefix, endOf(prefix)),
      revision: this.#revisions().last,
    }));
  }

  async transact(
    conditions: readonly Condition[],
    changes: readonly Change[],
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    requireDistinct(changes);
    return this.#write(signal, () => {
      const isTrue = conditions.every(({ key, revision }) => this.#revisionOf(key) === revision);
      return isTrue ? this.#apply(changes) : undefined;
    });
  }

  async *watch(prefix: string, after: number, signal: AbortSignal): AsyncIterable<readonly Changed[]> {
    const ending = AbortSignal.any([signal, this.#closing.signal]);
    let seen = after;
    let isFirst = true;
    while (!signal.aborted) {
      const { changes, revision } = this.#read(undefined, () => this.#changes(prefix, seen));
      seen = revision;
      if (isFirst || changes.length > 0) yield changes;
      else
        await once(writes, this.#file, { signal: AbortSignal.any([ending, AbortSignal.timeout(POLL_MS)]) }).catch(
          () => {},
        );
      isFirst = false;
    }
  }

  async lease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    const id = this.#write(signal, () => {
      const made = this.#db
        .prepare("INSERT INTO leases (ttl_ms, ends_at) VALUES (?, ?)")
        .run(ttlMs, Date.now() + ttlMs);
      return Number(made.lastInsertRowid);
    });
    return {
      id: String(id),
      ttlMs,
      renew: async (renewSignal) =>
        this.#write(renewSignal, () => {
          const renewed = this.#db.prepare("UPDATE leases SET ends_at = ? WHERE id = ?").run(Date.now() + ttlMs, id);
          return renewed.changes === 1;
        }),
      revoke: async (revokeSignal) => this.#write(revokeSignal, () => this.#end([id])),
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#db.close();
  }

  /** Looks at the file, after leases that are over have ended. */
  #read<T>(signal: AbortSignal | undefined, work: () => T): T {
    signal?.throwIfAborted();
    return this.#attempt(() => {
      const over = this.#over();
      if (over.length > 0) this.#committed(() => this.#end(over));
      return this.#db.transaction(work)();
    });
  }

  #write<T>(signal: AbortSignal | undefined, work: () => T): T {
    signal?.throwIfAborted();
    return this.#attempt(() =>
      this.#committed(() => {
        this.#end(this.#over());
        return work();
      }),
    );
  }

  #committed<T>(work: () => T): T {
    const result = this.#db.transaction(work).immediate();
    writes.emit(this.#file);
    return result;
  }

  #attempt<T>(work: () => T): T {
    if (!this.#db.open) throw away(this.#file, "it was closed");
    try {
      return work();
    } catch (error) {
      if ((error as { code?: string }).code?.startsWith("SQLITE_") !== true) throw error;
      throw away(this.#file, messageOf(error), error);
    }
  }

  /** The leases whose time is over. */
  #over(): number[] {
    return this.#db.prepare<[number], number>("SELECT id FROM leases WHERE ends_at <= ?").pluck().all(Date.now());
  }

  /** Ends leases, and deletes their keys. */
  #end(leases: readonly number[]): void {
    for (const id of leases) {
      const keys = this.#db.prepare<[number], string>("SELECT key FROM entries WHERE lease = ?").pluck().all(id);
      this.#apply(keys.map((key) => ({ key, value: null })));
      this.#db.prepare("DELETE FROM leases WHERE id = ?").run(id);
    }
  }

  #apply(changes: readonly Change[]): number {
    const effective = changes.filter(({ key, value }) => value !== null || this.#revisionOf(key) !== 0);
    const { last } = this.#revisions();
    // Nothing to wait for: every copy of the directory has revision 1.
    if (effective.length === 0) return 1;
    const revision = last + 1;
    for (const change of effective) this.#change(change, revision);
    this.#db.prepare("UPDATE revisions SET last = ?").run(revision);
    this.#forget(revision - this.#history);
    return revision;
  }

  #change({ key, value, lease }: Change, revision: number): void {
    this.#db.prepare("INSERT INTO history VALUES (?, ?, ?)").run(revision, key, value);
    if (value === null) {
      this.#db.prepare("DELETE FROM entries WHERE key = ?").run(key);
      return;
    }
    const id = lease === undefined ? null : Number(lease.id);
    if (id !== null && this.#db.prepare("SELECT 1 FROM leases WHERE id = ?").get(id) === undefined)
      throw new LeaseGone(`the lease of ${key} has ended`);
    this.#db.prepare("REPLACE INTO entries VALUES (?, ?, ?, ?)").run(key, value, revision, id);
  }

  #forget(until: number): void {
    if (until <= this.#revisions().forgotten) return;
    this.#db.prepare("DELETE FROM history WHERE revision <= ?").run(until);
    this.#db.prepare("UPDATE revisions SET forgotten = ?").run(until);
  }

  #changes(prefix: string, after: number): { changes: Changed[]; revision: number } {
    const { last, forgotten } = this.#revisions();
    if (after < forgotten || after > last) throw new HistoryGone(`changes after revision ${after} are forgotten`);
    const changes = this.#db
      .prepare<[number, string, string], Changed>(
        "SELECT key, value, revision FROM history WHERE revision > ? AND key >= ? AND key < ? ORDER BY revision, key",
      )
      .all(after, prefix, endOf(prefix));
    return { changes, revision: last };
  }

  #revisionOf(key: string): number {
    return this.#db.prepare<[string], number>("SELECT revision FROM entries WHERE key = ?").pluck().get(key) ?? 0;
  }

  #revisions(): { last: number; forgotten: number } {
    const row = this.#db
      .prepare<[], { last: number; forgotten: number }>("SELECT last, forgotten FROM revisions")
      .get();
    if (row === undefined) throw away(this.#file, "it was emptied");
    return row;
  }
}

/** The first key after all keys of a prefix. */
function endOf(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

function requireDistinct(changes: readonly Change[]): void {
  if (new Set(changes.map(({ key }) => key)).size < changes.length)
    throw new Error("A transaction changes a key twice.");
}

function away(file: string, why: string, cause?: unknown): HibernautError {
  return new HibernautError("unavailable", `The cluster directory ${file} does not answer: ${why}.`, {}, { cause });
}
