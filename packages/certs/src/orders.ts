/** Makes orders, a few at a time, and notes how they ended. */
import { within } from "@hibernaut/lib/async";
import type { CertificateStore } from "@hibernaut/store";
import pLimit from "p-limit";
import { AuthorityFault, type CertificateAuthority, type HostChallenge, type Order } from "./contract.ts";
import type { CertificateFiles } from "./files.ts";
import { sentence } from "./refusals.ts";
import { challengeFor, retryTime } from "./rules.ts";

export interface OrdersOptions {
  store: CertificateStore;
  stored: CertificateFiles;
  authority: CertificateAuthority;
  prove: Order["prove"];
  /** How hostnames are proven; wildcards are by DNS. */
  challenge: HostChallenge;
  /** How long an order may take, in milliseconds. */
  orderTimeoutMs: number;
  /** The wall clock, which tests move. */
  clock(): Date;
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
  };
  /** From 0 to 1. For tests. */
  random?(): number;
}

/** Orders at a time. Each is a wait of seconds with some ten requests, and a whole list at once would look like an attack. */
export const ORDERS_AT_ONCE = 4;

export class Orders {
  /** How many orders ended, by how. */
  readonly ended = { issued: 0, failed: 0 };
  readonly #options: OrdersOptions;
  readonly #limit = pLimit(ORDERS_AT_ONCE);
  readonly #closing = new AbortController();
  /** Orders that wait or are in progress, by name: the queue is never longer than the list of certificates. */
  readonly #open = new Map<string, Promise<void>>();

  constructor(options: OrdersOptions) {
    this.#options = options;
  }

  /** Orders a certificate, unless that is in progress. Resolves when the order has ended. Rejects when the store fails. */
  make(name: string): Promise<void> {
    const open = this.#open.get(name);
    if (open !== undefined) return open;
    const order = this.#limit(() => this.#attempt(name)).finally(() => this.#open.delete(name));
    this.#open.set(name, order);
    return order;
  }

  /** Gives orders up that are in progress; the next platform makes them again. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The platform is shutting down."));
    await Promise.allSettled(this.#open.values());
    this.#options.authority.close();
  }

  async #attempt(name: string): Promise<void> {
    const { store, stored, authority, prove, challenge, orderTimeoutMs, log } = this.#options;
    const { signal } = this.#closing;
    const before = store.get(name);
    // It may have been removed while it waited for its turn.
    if (signal.aborted || before === undefined) return;
    try {
      const limit = within(signal, orderTimeoutMs, "The order");
      const issued = await authority.issue({ name, challenge: challengeFor(name, challenge), prove }, limit);
      const record = store.get(name);
      if (record === undefined) return;
      // In this order: after a crash in between, the next platform orders again, and no failure outlives its end.
      store.update({ ...record, failure: null });
      const { issuer, notAfter } = await stored.put(name, issued, authority.directory);
      this.ended.issued += 1;
      // It may have been removed just now.
      if (store.get(name) === undefined) return await stored.remove(name);
      store.update({ ...record, failure: null }, "issued");
      const until = new Date(notAfter).toISOString();
      log.info({ hostname: name, app: record.app, issuer, until }, "a certificate was issued");
    } catch (error) {
      if (!signal.aborted) this.#failed(name, error, (before.failure?.attempts ?? 0) + 1);
    }
  }

  #failed(name: string, error: unknown, attempts: number): void {
    const { store, stored, clock, random = Math.random, log } = this.#options;
    this.ended.failed += 1;
    const record = store.get(name);
    if (record === undefined) return;
    const now = clock();
    const reason = sentence(error);
    const retryAfterMs = error instanceof AuthorityFault ? error.retryAfterMs : undefined;
    const { next: at, held } = retryTime(attempts, { now: now.getTime(), random: random(), retryAfterMs });
    const next = new Date(at).toISOString();
    store.update({ ...record, failure: { reason, attempts, at: now.toISOString(), next, held } }, "failed");
    const until = stored.get(name)?.notAfter;
    const left = until === undefined ? null : new Date(until).toISOString();
    const fields = { hostname: name, app: record.app, reason, attempts, next, valid_until: left };
    log.warn(fields, left === null ? "a certificate could not be had" : "a certificate could not be renewed");
  }
}
