/** How webhooks and their deliveries are stored. Part of the store's contract. */
import type {
  AttemptRecord,
  DeliveryRecord,
  NewDelivery,
  PendingDelivery,
  WebhookRecord,
} from "@hibernaut/domain/webhook";

/** What can be changed about a webhook. */
export type WebhookChanges = Partial<
  Pick<WebhookRecord, "url" | "description" | "events" | "secret" | "formerSecret">
> & {
  /** Names of apps in place of those that it has; null for all. */
  apps?: readonly string[] | null;
};

/** Webhooks. */
export interface WebhookStore {
  /** Lists all, oldest first. */
  list(): WebhookRecord[];
  get(id: string): WebhookRecord | undefined;
  /** Adds a webhook, which gets the events from now on. False when one of its apps does not exist. */
  insert(webhook: WebhookRecord): boolean;
  /**
   * Changes a webhook. Deliveries about apps that it no longer has are dropped. False when there is none, or one of the
   * apps does not exist.
   */
  update(id: string, changes: WebhookChanges): boolean;
  /** Removes a webhook with its deliveries. False when there is none. */
  remove(id: string): boolean;
  /** Disables a webhook, with an event that says why. False when it is disabled already, or there is none. */
  disable(id: string, disabled: { at: string; reason: string }): boolean;
  /**
   * Enables a webhook. What waits is due at once, or with `skip` dropped, together with everything that happened until
   * now. False when it is enabled already, or there is none.
   */
  enable(id: string, options: { skip: boolean }): boolean;
}

/** What is on its way to webhooks, and what arrived lately. A power cut may undo the last calls, a crash does not. */
export interface DeliveryStore {
  /** Notes how far a webhook has come in the stream of events, and what it is to get of that. */
  takeIn(webhook: string, position: number, deliveries: readonly NewDelivery[]): void;
  /** Lists what has not been delivered, in the order of events. */
  pending(webhook: string): PendingDelivery[];
  /** Returns what is to be sent. Undefined if it is not pending. */
  message(webhook: string, sequence: number): Pick<NewDelivery, "messageId" | "body"> | undefined;
  /** Notes an attempt that succeeded. Drops old entries of the log. */
  delivered(webhook: string, sequence: number, attempt: AttemptRecord): void;
  /** Notes an attempt that failed, and when the next one is due (milliseconds since 1970). */
  failed(webhook: string, sequence: number, attempt: AttemptRecord, nextAt: number): void;
  /** Lists up to `limit` deliveries, newest first. */
  list(webhook: string, limit: number): DeliveryRecord[];
}
