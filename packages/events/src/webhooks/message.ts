/** What webhooks are told: which events, in which words, and in which order. Pure. */
import { createHash } from "node:crypto";
import type { StreamEvent } from "@hibernaut/domain/stream-event";
import type { NewDelivery, WebhookRecord } from "@hibernaut/domain/webhook";
import { isOfType } from "../filter.ts";
import type { Gap } from "../stream.ts";

/** Events that belong to no app have an order of their own. */
const PLATFORM_LANE = "";
/** As many bytes of a digest as make an id that is never the same by chance. */
const ID_BYTES = 18;

/** Whether a webhook gets an event. Never one about itself: a receiver that is gone cannot be told that it is. */
export function wants(
  { id, events, apps }: Pick<WebhookRecord, "id" | "events" | "apps">,
  event: StreamEvent,
): boolean {
  if (event.type.startsWith("webhook.") && event.data.webhook_id === id) return false;
  if (apps !== null) {
    const own = apps.find(({ name }) => name === event.app);
    if (own === undefined || event.sequence <= own.since || event.sequence > (own.until ?? Infinity)) return false;
  }
  return events.length === 0 || events.some((wanted) => isOfType(event.type, wanted));
}

/** Returns an event as it is delivered. */
export function deliveryOf({ sequence, at, type, app, machine, data }: StreamEvent): NewDelivery {
  return {
    ...{ sequence, type, app, machine },
    lane: machine ?? (app === null ? PLATFORM_LANE : `app ${app}`),
    // Not the number alone: after a restore, numbers may be given to other events.
    messageId: idOf(sequence, at, type, app, machine),
    body: bodyOf(type, at, { ...data, sequence, app_name: app, machine_id: machine }),
  };
}

/** Returns what says that events are gone. It has the number of the last one, which no other delivery has. */
export function gapDelivery({ after, until }: Gap, at: string): NewDelivery {
  return {
    ...{ sequence: until, type: "gap", app: null, machine: null, lane: PLATFORM_LANE },
    messageId: idOf("gap", after, until, at),
    body: bodyOf("gap", at, { after, until }),
  };
}

/** Returns the message that only shows that a webhook works. */
export function testMessage(webhookId: string, at: string, random: string): { messageId: string; body: string } {
  return { messageId: idOf("test", random), body: bodyOf("webhook.test", at, { webhook_id: webhookId }) };
}

/** The form that Standard Webhooks suggests. */
function bodyOf(type: string, timestamp: string, data: Record<string, unknown>): string {
  return JSON.stringify({ type, timestamp, data });
}

function idOf(...parts: unknown[]): string {
  const digest = createHash("sha256").update(JSON.stringify(parts)).digest();
  return `msg_${digest.subarray(0, ID_BYTES).toString("base64url")}`;
}
