/** Webhooks: addresses that are told of events, and what is on its way to each. */

/** A secret as it is stored: encrypted, like the secrets of apps. */
export interface SealedSecret {
  /** Ends with the authentication tag. */
  ciphertext: Uint8Array;
  nonce: Uint8Array;
}

/** An app whose events a webhook gets. */
export interface WebhookApp {
  name: string;
  /** Only events after this sequence number: an earlier app of the name was another. */
  since: number;
  /** The sequence number of the event that told of its end; null while it exists. A later app of the name is another. */
  until: number | null;
}

/** A webhook. Times are RFC 3339. */
export interface WebhookRecord {
  /** `wh_` and 16 hex digits. */
  id: string;
  /** May contain a login or a token: no log, event or metric has more of it than the host. */
  url: string;
  description: string;
  /** Types of events, or groups of types; empty for all. */
  events: readonly string[];
  /** Null for the events of all apps and of the platform. */
  apps: readonly WebhookApp[] | null;
  createdAt: string;
  /** Everything up to this sequence number was delivered, or is on its way, or was not wanted. */
  position: number;
  /** Null while events are delivered. */
  disabled: { at: string; reason: string } | null;
  secret: SealedSecret;
  /** What the secret was before its rotation. Signs, too, until then. */
  formerSecret: (SealedSecret & { until: string }) | null;
}

/** What is on its way. Deliveries with the same lane happen one after the other. */
export interface NewDelivery {
  /** Of the event. Of a gap, the last number that is gone. */
  sequence: number;
  /** The machine, or what else has an order of its own. */
  lane: string;
  /** The same for every attempt: `webhook-id`. */
  messageId: string;
  type: string;
  app: string | null;
  machine: string | null;
  /** JSON, exactly as it is signed. */
  body: string;
}

/** A delivery that has not ended, without its body. */
export interface PendingDelivery {
  sequence: number;
  lane: string;
  /** Attempts that failed. */
  attempts: number;
  /** Milliseconds since 1970; 0 for at once. */
  nextAt: number;
}

/** `skipped`: someone enabled the webhook again without what waited. */
export const DELIVERY_STATES = ["pending", "delivered", "skipped"] as const;

/** How the last attempt of a delivery ended. */
export interface AttemptRecord {
  /** RFC 3339. */
  at: string;
  /** HTTP status; null without an answer. */
  status: number | null;
  /** Why it failed, as a sentence; null if it did not. */
  error: string | null;
  durationMs: number;
}

/** A line of the delivery log. */
export interface DeliveryRecord extends Omit<NewDelivery, "body" | "lane"> {
  state: (typeof DELIVERY_STATES)[number];
  /** How many were made. */
  attempts: number;
  /** Null before the first. */
  last: AttemptRecord | null;
  /** When the next attempt is due, in milliseconds since 1970. Means nothing unless the delivery is pending. */
  nextAt: number;
}
