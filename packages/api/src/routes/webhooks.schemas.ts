/** Shapes of `/v1/webhooks`. */
import { DELIVERY_STATES } from "@hibernaut/domain/webhook";
import { OUTCOMES } from "@hibernaut/events";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

/** More types than anyone lists; a group such as `machine` has them all. */
const MAX_EVENTS = 50;
/** As many apps as a token can be limited to. */
const MAX_APPS = 100;
const MAX_DESCRIPTION = 200;
/** Longer than the platform accepts, whose own refusal says more. */
const MAX_URL = 10_000;
/** How long a secret signs after its rotation unless the rotation says otherwise, in seconds: time to change it. */
export const SECRET_OVERLAP_S = 86_400;
/** The longest, in seconds. A rotation that takes more than a month is not finished at all. */
const MAX_SECRET_OVERLAP_S = 30 * 86_400;
/** Enough to see a pattern. */
export const DELIVERIES_SHOWN = 50;

const events = (description: string) =>
  Type.Array(Type.String({ pattern: "^[a-z][a-z_]*(\\.[a-z_]+|\\.\\*)?$", maxLength: 80 }), {
    maxItems: MAX_EVENTS,
    description,
  });
const apps = (description: string) =>
  nullable(Type.Array(Type.String(), { minItems: 1, maxItems: MAX_APPS }), description);
const url = Type.String({ minLength: 1, maxLength: MAX_URL, description: "Where events are sent, over https." });
const description = Type.String({ maxLength: MAX_DESCRIPTION, description: "For people." });

const shared = {
  id: Type.String(),
  url: Type.String({ description: "A password in it is not shown." }),
  description,
  events: Type.Array(Type.String(), { description: "Types of events, or groups of types; empty for all." }),
  apps: nullable(
    Type.Array(Type.String()),
    "The only apps whose events it gets; null for all, and for the platform's.",
  ),
  created_at: time,
  disabled_at: nullable(time, "Null while events are delivered."),
  disabled_reason: nullable(Type.String()),
  former_secret_until: nullable(time, "Until when the secret before the last rotation signs, too."),
};

export const WebhookReply = Type.Object(shared, {
  ...closed,
  title: "Webhook",
  description: "A URL that is told of events, without its secret.",
});

/** A webhook with its secret, which is encrypted from then on. */
export const NewWebhookReply = Type.Object(
  { ...shared, secret: Type.String({ description: "What signatures are verified with. No other reply contains it." }) },
  { ...closed, title: "NewWebhook", description: "A webhook that was just created, or whose secret was rotated." },
);

export const WebhookList = Type.Object({ webhooks: Type.Array(WebhookReply) }, closed);

export const WebhookParams = Type.Object({ webhook_id: Type.String() }, closed);

export const CreateWebhookBody = Type.Object(
  {
    url,
    events: Type.Optional(
      events("Types of events such as `machine.suspended`, or groups such as `machine`. Default: all."),
    ),
    apps: Type.Optional(apps("The only apps whose events it gets. Default: all, and the platform's.")),
    description: Type.Optional(description),
  },
  { ...closed, title: "CreateWebhookRequest" },
);

/** Changes a webhook. What is absent stays. */
export const UpdateWebhookBody = Type.Object(
  {
    url: Type.Optional(url),
    events: Type.Optional(events("In place of those that it has; empty for all.")),
    apps: Type.Optional(apps("In place of those that it has; null for all.")),
    description: Type.Optional(description),
    enabled: Type.Optional(
      Type.Boolean({ description: "Whether events are delivered. Enabled again, it gets what happened meanwhile." }),
    ),
    skip: Type.Optional(
      Type.Boolean({
        description: "With `enabled: true`: drop what waits, and what happened meanwhile. Default: false.",
      }),
    ),
  },
  { ...closed, title: "UpdateWebhookRequest" },
);

export const RotateWebhookBody = Type.Object(
  {
    overlap: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_SECRET_OVERLAP_S,
        description: `Seconds for which the old secret signs, too. Default: ${SECRET_OVERLAP_S}.`,
      }),
    ),
  },
  closed,
);

export const WebhookTestReply = Type.Object(
  {
    message_id: Type.String({ description: "`webhook-id` of the request." }),
    outcome: oneOf(OUTCOMES, { title: "WebhookOutcome" }),
    status: nullable(Type.Integer(), "HTTP status; null without an answer."),
    error: nullable(Type.String(), "Why it failed; null if it was delivered."),
    duration_ms: Type.Integer(),
  },
  { ...closed, title: "WebhookTest", description: "How one attempt to send a test message ended." },
);

/** `?limit=20` */
export const DeliveriesQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: `Return at most this many. Default: ${DELIVERIES_SHOWN}.`,
      }),
    ),
  },
  closed,
);

const Delivery = Type.Object(
  {
    sequence: Type.Integer({ description: "The event's number; of a `gap`, the last number that is gone." }),
    message_id: Type.String({ description: "`webhook-id`, the same for every attempt." }),
    type: Type.String(),
    app_name: nullable(Type.String()),
    machine_id: nullable(Type.String()),
    state: oneOf(DELIVERY_STATES, { title: "DeliveryState" }),
    attempts: Type.Integer({ description: "How many were made; since it was enabled, if it has not arrived." }),
    last_attempt_at: nullable(time),
    next_attempt_at: nullable(time, "Null unless it waits for another attempt."),
    status: nullable(Type.Integer(), "HTTP status of the last attempt; null without an answer."),
    error: nullable(Type.String(), "Why the last attempt failed; null if it did not."),
    duration_ms: nullable(Type.Integer(), "How long the last attempt took."),
  },
  { ...closed, title: "WebhookDelivery", description: "An event on its way to a webhook, or that arrived lately." },
);

export const DeliveryList = Type.Object({ deliveries: Type.Array(Delivery) }, closed);

export type WebhookWire = Static<typeof WebhookReply>;

export type DeliveryWire = Static<typeof Delivery>;
