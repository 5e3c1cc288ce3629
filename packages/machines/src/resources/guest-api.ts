/** What programs inside a machine can ask for, about their own machine only. `id` is always the machine's. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { KeepAwake } from "@hibernaut/domain/machine";
import type { ControllerSet } from "../controller-set.ts";
import { isPrewarming } from "../decide/prewarm.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { GuestListener } from "../guest-events.ts";
import { type WakeRequest, wakeTime } from "../schedule/wake-time.ts";

/** The platform's side of a machine's local API. Every method throws `not_found` once the machine is destroyed. */
export class GuestApi {
  readonly #deps: Pick<MachineDependencies, "settings" | "clock">;
  readonly #controllers: ControllerSet;

  constructor(deps: Pick<MachineDependencies, "settings" | "clock">, controllers: ControllerSet) {
    this.#deps = deps;
    this.#controllers = controllers;
  }

  /** Returns the app that the machine belongs to, and its id. */
  identify(id: string): { app: string; id: string } {
    return { app: this.#controllers.require(id).record.app, id };
  }

  /**
   * Prevents the machine from being put to sleep for being idle, for `ttlS` seconds from now. 0 ends that. Throws
   * `invalid_argument` when `ttlS` is more than the setting allows.
   */
  keepAwake(id: string, ttlS: number, reason: string): KeepAwake | null {
    const longest = this.#deps.settings.keepAwakeMaxS;
    if (ttlS > longest) {
      const message = `A keep-awake lease lasts up to ${longest} s (setting HIBERNAUT_KEEPALIVE_MAX_TTL). Ask for a shorter one, and renew it before it ends.`;
      throw new HibernautError("invalid_argument", message, { field: "ttl", maximum: longest });
    }
    const lease = ttlS === 0 ? null : { until: new Date(Date.now() + ttlS * 1000).toISOString(), reason };
    this.#controllers.require(id).note({ type: "keep_awake", lease });
    return lease;
  }

  /**
   * Wakes the machine at that time, if it is suspended by then. Replaces the wake that was planned before. Throws
   * `invalid_argument` unless the time is in the future and within a year.
   */
  planWake(id: string, request: WakeRequest): { at: string } {
    const at = wakeTime(request, this.#deps.clock?.() ?? new Date()).toISOString();
    this.#controllers.require(id).note({ type: "plan_wake", at });
    return { at };
  }

  /** Forgets the planned wake, if there is one. */
  cancelWake(id: string): void {
    this.#controllers.require(id).note({ type: "plan_wake", at: null });
  }

  /** Says that the machine may sleep again, if it was started only for a snapshot. Returns whether it was. */
  prepared(id: string): boolean {
    const controller = this.#controllers.require(id);
    controller.note({ type: "prepared" });
    return isPrewarming(controller.record);
  }

  /**
   * Calls `listener` for starts, and for suspends to get ready for, beginning with the last start. Returns a function
   * that ends that.
   */
  subscribe(id: string, listener: GuestListener): () => void {
    return this.#controllers.require(id).inside.subscribe(listener);
  }

  /** Says that a program is ready for the suspend with this id. Throws `not_found` when no such suspend waits. */
  ready(id: string, questionId: string): void {
    this.#controllers.require(id).inside.ready(questionId);
  }

  /** Makes a suspend wait briefly for `sent`, a reply that must reach the guest first. */
  awaitReply(id: string, sent: Promise<void>): void {
    this.#controllers.require(id).inside.awaitReply(sent);
  }
}
