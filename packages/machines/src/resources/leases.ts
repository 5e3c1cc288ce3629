/** Leases: what clients take, show and give back. A lease is between clients: nothing that the platform does asks for it. */
import { DEFAULT_LEASE_TTL_S, leaseFrom, liveLease, type MachineLease } from "@hibernaut/domain/lease";
import type { ControllerSet } from "../controller-set.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { type LeaseWish, type NewLease, newLease } from "../leases/nonce.ts";
import { requireLease, requirePassage, requireUnheld } from "../leases/rules.ts";

/** A lease as its machine has it. */
export interface LeaseView {
  lease: MachineLease;
  /** The machine's version. */
  version: string;
}

/**
 * Every method throws `not_found` when there is no such machine; a `word` is its id, its name, or the beginning of its id.
 * Deciding and storing is one synchronous step, so of several clients at once, one gets the lease.
 */
export class Leases {
  readonly #deps: Pick<MachineDependencies, "clock">;
  readonly #controllers: ControllerSet;

  constructor(deps: Pick<MachineDependencies, "clock">, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /**
   * Takes a lease, or with the nonce of one that lives lets it last `ttl` seconds from now; then its owner stays, and a
   * description replaces the one before. Throws `lease_held` while another client has one, and `failed_precondition` for
   * the nonce of one that has ended.
   */
  take(app: string, word: string, wish: LeaseWish, nonce?: string): LeaseView & { nonce: string } {
    const controller = this.#controllers.find(app, word);
    const { record } = controller;
    const now = this.#now();
    requirePassage(record, nonce, now);
    const taken = nonce === undefined ? newLease(wish) : renewal(requireLease(record, now), nonce, wish);
    const lease = leaseFrom(taken.terms, now);
    controller.remark({ type: "lease", lease });
    return { nonce: taken.nonce, lease, version: record.version };
  }

  /** Returns the lease that lives. Throws `not_found` when there is none. */
  get(app: string, word: string): LeaseView {
    const { record } = this.#controllers.find(app, word);
    return { lease: requireLease(record, this.#now()), version: record.version };
  }

  /** The id of the token that took the lease that lives. Undefined when there is none. */
  holder(app: string, word: string): string | undefined {
    return liveLease(this.#controllers.find(app, word).record.lease, this.#now())?.owner;
  }

  /** Gives the lease back. Throws `not_found` when there is none, and `lease_held` for another nonce than its own. */
  release(app: string, word: string, nonce: string | undefined): void {
    const controller = this.#controllers.find(app, word);
    requireLease(controller.record, this.#now());
    requirePassage(controller.record, nonce, this.#now());
    controller.remark({ type: "lease_over", forced: false });
  }

  /** Ends the lease of whomever it is. Throws `not_found` when there is none. */
  clear(app: string, word: string): void {
    const controller = this.#controllers.find(app, word);
    requireLease(controller.record, this.#now());
    controller.remark({ type: "lease_over", forced: true });
  }

  /** Throws unless someone with this nonce, or with none, may change the machine: see {@link requirePassage}. */
  requirePassage(app: string, word: string, nonce: string | undefined): void {
    requirePassage(this.#controllers.find(app, word).record, nonce, this.#now());
  }

  /** Throws `lease_held` if another client has taken a lease since the passage of a request that took long. */
  requireUnheld(app: string, word: string, nonce: string | undefined): void {
    requireUnheld(this.#controllers.find(app, word).record, nonce, this.#now());
  }

  #now(): Date {
    return this.#deps.clock?.() ?? new Date();
  }
}

function renewal(
  { nonceHash, owner, description: before }: MachineLease,
  nonce: string,
  { ttl: ttlS = DEFAULT_LEASE_TTL_S, description = before }: LeaseWish,
): NewLease {
  return { nonce, terms: { nonceHash, owner, description, ttlS } };
}
