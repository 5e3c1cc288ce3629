/** What deliveries need from the rest of the platform. */
import type { WebhookRecord } from "@hibernaut/domain/webhook";
import type { DeliveryStore, WebhookStore } from "@hibernaut/store";
import type { Clock } from "./clock.ts";
import type { Attempt } from "./rules.ts";

/** An attempt that was made. */
export interface MadeAttempt {
  attempt: Attempt;
  /** RFC 3339. */
  at: string;
  durationMs: number;
}

export interface DeliveryParts {
  webhooks: WebhookStore;
  deliveries: DeliveryStore;
  clock: Clock;
  /**
   * Deliveries that may wait in the queue of a webhook. With more, no further event is taken from the stream, where the
   * newest 100,000 are kept.
   */
  maxWaiting: number;
  /** From 0 to 1. */
  random(): number;
  /** Signs a message and sends it once. Rejects only when the signal is aborted. */
  attempt(
    webhook: WebhookRecord,
    message: { messageId: string; body: string },
    signal: AbortSignal,
  ): Promise<MadeAttempt>;
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
    error(fields: Record<string, unknown>, message: string): void;
  };
}
