/**
 * A cluster directory in etcd 3.4 or later, through its JSON gateway, which every member serves at its client port: no
 * client library is needed. etcd's transactions are strictly serializable, and what it has acknowledged is on the disks of
 * most members.
 */
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
import { EtcdFault, isCompacted, isLeaseGone, unavailable } from "./faults.ts";
import { type EtcdTls, Gateway } from "./gateway.ts";
import {
  changesOf,
  encode,
  entryOf,
  type GrantReply,
  hasChanged,
  type KeepAliveReply,
  keyAfter,
  type RangeReply,
  rangeOf,
  revisionOf,
  type TxnReply,
  txnOf,
  type WatchReply,
} from "./messages.ts";

/** How many keys one reply lists: etcd builds it in memory. */
const PAGE = 1000;
/** A list begins again when etcd forgets the moment at which it began. That this happens to every try is a fault. */
const LIST_TRIES = 3;

interface EtcdOptions {
  /** The members' client URLs, in the order in which they are tried. */
  endpoints: readonly string[];
  tls?: EtcdTls | undefined;
  /** How long a request may take, in milliseconds; the default outlasts an election of a leader. */
  patienceMs?: number;
}

export class EtcdDirectory implements Directory {
  readonly #gateway: Gateway;
  readonly #endpoints: string;

  constructor({ endpoints, tls, patienceMs }: EtcdOptions) {
    this.#gateway = new Gateway(endpoints, tls, patienceMs);
    this.#endpoints = endpoints.join(", ");
  }

  async get(key: string, signal?: AbortSignal): Promise<Entry | undefined> {
    const { kvs = [] } = await this.#call<RangeReply>("/v3/kv/range", { key: encode(key) }, true, signal);
    return kvs[0] && entryOf(kvs[0]);
  }

  async list(prefix: string, signal?: AbortSignal): Promise<Listing> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#list(prefix, signal);
      } catch (error) {
        if (!(error instanceof HistoryGone) || tries === LIST_TRIES) throw error;
      }
    }
  }

  async transact(
    conditions: readonly Condition[],
    changes: readonly Change[],
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    if (new Set(changes.map(({ key }) => key)).size < changes.length)
      throw new Error("A transaction changes a key twice.");
    const reply = await this.#call<TxnReply>("/v3/kv/txn", txnOf(conditions, changes), false, signal);
    if (reply.succeeded !== true) return undefined;
    // Nothing to wait for: every copy of the directory has revision 1.
    return hasChanged(reply) ? revisionOf(reply) : 1;
  }

  async *watch(prefix: string, after: number, signal: AbortSignal): AsyncIterable<readonly Changed[]> {
    const create = { ...rangeOf(prefix), start_revision: String(after + 1) };
    const stream = this.#gateway.stream<WatchReply>("/v3/watch", { create_request: create }, signal);
    for await (const reply of stream) {
      const isBehind = reply.created === true && revisionOf(reply) < after;
      if (Number(reply.compact_revision ?? 0) > 0 || (isBehind && (await this.#isRestored(after, signal))))
        throw new HistoryGone(`changes after revision ${after} are forgotten`);
      if (reply.canceled === true) throw unavailable(new Error(reply.cancel_reason ?? "it ended"), this.#endpoints);
      if (reply.created === true || reply.events !== undefined) yield changesOf(reply);
    }
  }

  async lease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    const granted = await this.#call<GrantReply>("/v3/lease/grant", { TTL: Math.ceil(ttlMs / 1000) }, false, signal);
    const id = granted.ID;
    return {
      id,
      ttlMs: Number(granted.TTL) * 1000,
      renew: async (renewSignal) => {
        const renewed = await this.#call<KeepAliveReply>("/v3/lease/keepalive", { ID: id }, true, renewSignal);
        return Number(renewed.TTL ?? 0) > 0;
      },
      revoke: async (revokeSignal) => {
        await this.#call("/v3/lease/revoke", { ID: id }, true, revokeSignal).catch((error: unknown) => {
          if (!(error instanceof LeaseGone)) throw error;
        });
      },
    };
  }

  async close(): Promise<void> {
    this.#gateway.close();
  }

  /** Whether etcd has never reached a revision: it was restored from an older snapshot. A single member may just be behind. */
  async #isRestored(revision: number, signal: AbortSignal): Promise<boolean> {
    const reply = await this.#call<RangeReply>("/v3/kv/range", { key: encode("/") }, true, signal);
    return revisionOf(reply) < revision;
  }

  async #list(prefix: string, signal: AbortSignal | undefined): Promise<Listing> {
    const entries: Entry[] = [];
    let revision = 0;
    for (;;) {
      const from = entries.at(-1);
      const range = { ...rangeOf(prefix, from && keyAfter(from.key)), limit: PAGE, revision: String(revision) };
      const reply = await this.#call<RangeReply>("/v3/kv/range", range, true, signal);
      entries.push(...(reply.kvs ?? []).map(entryOf));
      if (revision === 0) revision = revisionOf(reply);
      if (reply.more !== true) return { entries, revision };
    }
  }

  async #call<T>(path: string, body: object, repeatable: boolean, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await this.#gateway.call<T>(path, body, { repeatable, signal });
    } catch (error) {
      if (isLeaseGone(error)) throw new LeaseGone("the lease has ended");
      if (isCompacted(error)) throw new HistoryGone("the directory has forgotten that revision");
      throw error instanceof EtcdFault ? unavailable(error, this.#endpoints) : error;
    }
  }
}
