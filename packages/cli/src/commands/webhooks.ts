/** `hibernaut webhooks` */
import type { UpdateWebhookRequest, Webhook } from "@hibernaut/client";
import { command, type Noun, type Option } from "../command.ts";
import { UsageError } from "../failure.ts";
import { LISTING, listText } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { ago, fields, lines, style } from "../terminal.ts";
import { deliveries, disable, enable, ID, remove, rotate, test } from "./webhook-act.ts";

const EVENT = {
  flags: "-e, --event <type>",
  description: "only events of this type, such as machine.suspended, or group, such as machine; may repeat",
  repeats: true,
} as const satisfies Option;
const APP = {
  flags: "-a, --app <name>",
  description: "only events of this app; may repeat",
  repeats: true,
  names: "app",
} as const satisfies Option;
const DESCRIPTION = { flags: "--description <text>", description: "what it is for" } as const satisfies Option;

const create = command({
  name: "create",
  aliases: ["add"],
  summary: "Have events sent to a URL",
  description:
    "Prints the webhook's id, and on the last line its secret, with which the receiver verifies that a request is from this platform. It is shown once. Without --event, all events are sent; without --app, those of all apps and of the platform.",
  arguments: [{ usage: "<url>", description: "where events are sent, over https" }],
  options: [EVENT, APP, DESCRIPTION],
  examples: [
    "hibernaut webhooks create https://example.com/hook --event machine.suspended --app shop",
    "hibernaut webhooks create https://example.com/alerts --event machine.failed --event certificate.failed",
  ],
  async run(context, [url = ""], { event, app, description }) {
    const made = await (await context.client()).createWebhook({
      url,
      ...(event !== undefined && { events: words(event) }),
      ...(app !== undefined && { apps: words(app) }),
      ...(description !== undefined && { description }),
    });
    context.say(
      `Created webhook ${made.id}. Keep its secret; it is not shown again. Try it: hibernaut webhooks test ${made.id}`,
    );
    return { document: made, text: made.secret };
  },
});

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List webhooks",
  options: LISTING,
  examples: ["hibernaut webhooks list", "hibernaut webhooks list -o wide"],
  async run(context, _args, options) {
    const webhooks = await (await context.client()).listWebhooks();
    const listing = {
      head: ["ID", "URL", "EVENTS", "APPS", "STATE"],
      row: (one: Webhook) => [one.id, one.url, eventsText(one), appsText(one), stateText(one)],
      wide: {
        head: ["CREATED", "DESCRIPTION"],
        row: ({ created_at: created, description }: Webhook) => [ago(created), description || "-"],
      },
      id: ({ id }: Webhook) => id,
      empty: "No webhooks.",
    };
    return { document: webhooks, text: listText(webhooks, listing, options) };
  },
});

const show = command({
  name: "show",
  summary: "Show a webhook",
  arguments: ID,
  examples: ["hibernaut webhooks show wh_0123456789abcdef"],
  async run(context, [id = ""]) {
    const webhook = await (await context.client()).getWebhook(id);
    return { document: webhook, text: webhookText(webhook) };
  },
});

const update = command({
  name: "update",
  summary: "Change where a webhook leads, and which events it gets",
  description:
    "The events and apps that you give are in place of those that it has. What waits is sent to the new URL.",
  arguments: ID,
  options: [{ flags: "--url <url>", description: "where events are sent, over https" }, EVENT, APP, DESCRIPTION],
  examples: [
    "hibernaut webhooks update wh_0123456789abcdef --event machine",
    "hibernaut webhooks update wh_0123456789abcdef --url https://example.com/new",
  ],
  async run(context, [id = ""], { url, event, app, description }) {
    const changes: UpdateWebhookRequest = {
      ...(url !== undefined && { url }),
      ...(event !== undefined && { events: words(event) }),
      ...(app !== undefined && { apps: words(app) }),
      ...(description !== undefined && { description }),
    };
    if (Object.keys(changes).length === 0)
      throw new UsageError("No change. Add --url, --event, --app or --description.");
    const webhook = await (await context.client()).updateWebhook(id, changes);
    return { document: webhook, text: webhookText(webhook) };
  },
});

function webhookText(webhook: Webhook): string {
  const { former_secret_until: former, disabled_reason: reason } = webhook;
  return lines(
    fields([
      ["id", webhook.id],
      ["url", webhook.url],
      ...(webhook.description === "" ? [] : [["description", webhook.description] as const]),
      ["events", eventsText(webhook)],
      ["apps", appsText(webhook)],
      ["created", localTime(webhook.created_at)],
      ["state", stateText(webhook)],
      ...(former === null ? [] : [["old secret", `signs, too, until ${localTime(former)}`] as const]),
    ]),
    reason !== null && style("red", reason, process.stdout),
  );
}

function eventsText({ events }: Webhook): string {
  return events.length === 0 ? "all" : events.join(",");
}

function appsText({ apps }: Webhook): string {
  return apps === null ? "all" : apps.join(",") || "none";
}

function stateText({ disabled_at: at }: Webhook): string {
  return at === null ? "enabled" : `disabled ${ago(at)}`;
}

/** Values that are repeated, separated by commas, or both. */
function words(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",")).map((word) => word.trim());
}

/** The commands about webhooks. */
export const webhooks: Noun = {
  name: "webhooks",
  aliases: ["webhook"],
  summary: "Have events sent to a URL",
  commands: [create, list, show, update, test, deliveries, enable, disable, rotate, remove],
};
