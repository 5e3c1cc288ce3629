/** `hibernaut webhooks` */
import type { Webhook } from "@hibernaut/client";
import { command, type Noun, type Option, type OptionValues } from "../command.ts";
import { UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given, separated } from "../option-values.ts";
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
  async run(context, [url = ""], options) {
    const made = await (await context.client()).createWebhook({ url, ...chosen(options) });
    context.say(
      `Created webhook ${made.id}. Keep its secret; it is not shown again. Try it: hibernaut webhooks test ${made.id}`,
    );
    return { document: made, text: made.secret };
  },
});

const list = listCommand({
  summary: "List webhooks",
  examples: ["hibernaut webhooks list", "hibernaut webhooks list -o wide"],
  fetch: (client) => client.listWebhooks(),
  show: () => ({
    head: ["ID", "URL", "EVENTS", "APPS", "STATE"],
    row: (one) => [one.id, one.url, eventsText(one), appsText(one), stateText(one)],
    wide: {
      head: ["CREATED", "DESCRIPTION"],
      row: ({ created_at: created, description }) => [ago(created), description || "-"],
    },
    id: ({ id }) => id,
    empty: "No webhooks.",
  }),
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
  async run(context, [id = ""], { url, ...options }) {
    const changes = { ...given({ url }), ...chosen(options) };
    if (Object.keys(changes).length === 0)
      throw new UsageError("No change. Add --url, --event, --app or --description.");
    const webhook = await (await context.client()).updateWebhook(id, changes);
    return { document: webhook, text: webhookText(webhook) };
  },
});

function chosen({ event, app, description }: OptionValues<[typeof EVENT, typeof APP, typeof DESCRIPTION]>) {
  return given({ events: event && separated(event), apps: app && separated(app), description });
}

function webhookText(webhook: Webhook): string {
  const { former_secret_until: former, disabled_reason: reason } = webhook;
  return lines(
    fields([
      ["id", webhook.id],
      ["url", webhook.url],
      ["description", webhook.description || undefined],
      ["events", eventsText(webhook)],
      ["apps", appsText(webhook)],
      ["created", localTime(webhook.created_at)],
      ["state", stateText(webhook)],
      ["old secret", former && `signs, too, until ${localTime(former)}`],
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

export const webhooks: Noun = {
  name: "webhooks",
  aliases: ["webhook"],
  summary: "Have events sent to a URL",
  commands: [create, list, show, update, test, deliveries, enable, disable, rotate, remove],
};
