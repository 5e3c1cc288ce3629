/** Webhooks and their deliveries as the API shows them. */
import type { DeliveryRecord, WebhookRecord } from "@hibernaut/domain/webhook";
import type { DeliveryWire, WebhookWire } from "./routes/webhooks.schemas.ts";

/** Names of its apps that exist; null for all. */
function liveApps({ apps }: WebhookRecord): string[] | null {
  return apps && apps.filter(({ until }) => until === null).map(({ name }) => name);
}

/** A webhook on the wire. A password in its URL is not shown. */
export function webhookWire(webhook: WebhookRecord): WebhookWire {
  const { id, description, events, createdAt, disabled, formerSecret } = webhook;
  const until = formerSecret?.until ?? null;
  return {
    ...{ id, description, url: withoutPassword(webhook.url) },
    events: [...events],
    apps: liveApps(webhook),
    created_at: createdAt,
    disabled_at: disabled?.at ?? null,
    disabled_reason: disabled?.reason ?? null,
    former_secret_until: until !== null && Date.parse(until) > Date.now() ? until : null,
  };
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  if (url.password === "") return text;
  url.password = "...";
  return url.href;
}

/** A delivery on the wire. `stopped`: its webhook is disabled, so no attempt is due. */
export function deliveryWire(
  { messageId, app, machine, last, nextAt, ...rest }: DeliveryRecord,
  stopped: boolean,
): DeliveryWire {
  const { sequence, type, state, attempts } = rest;
  const waits = state === "pending" && nextAt > 0 && !stopped;
  return {
    ...{ sequence, type, state, attempts },
    message_id: messageId,
    app_name: app,
    machine_id: machine,
    last_attempt_at: last?.at ?? null,
    next_attempt_at: waits ? new Date(nextAt).toISOString() : null,
    status: last?.status ?? null,
    error: last?.error ?? null,
    duration_ms: last?.durationMs ?? null,
  };
}
