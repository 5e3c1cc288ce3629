/** `hibernaut webhooks` */
import type { UpdateWebhookRequest, Webhook, WebhookDelivery } from "@hibernaut/client";
import { command, type Noun, type Option } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { CliError, UsageError } from "../failure.ts";
import { LISTING, listText } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { ago, fields, lines, style, until } from "../terminal.ts";

const ID = [{ usage: "<id>", description: "the webhook's id, from `webhooks list`", names: "webhook" }] as const;
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

const test = command({
  name: "test",
  summary: "Send a test message, once",
  description: "Prints what came of it. Exits with code 1 if the message did not arrive.",
  arguments: ID,
  examples: ["hibernaut webhooks test wh_0123456789abcdef"],
  async run(context, [id = ""]) {
    const client = await context.client();
    const result = await context.progress("Sending a test message", client.testWebhook(id));
    const { error, status, duration_ms: took } = result;
    if (error === null)
      return { document: result, text: `The receiver answered ${status} after ${took} ms: the message arrived.` };
    const failure = new CliError("failed_precondition", `The test message did not arrive. ${error}`);
    return { document: result, text: "", failures: [failure] };
  },
});

const deliveries = command({
  name: "deliveries",
  aliases: ["log"],
  summary: "Show what is on its way to a webhook, and what arrived lately",
  arguments: ID,
  options: [
    { flags: "-n, --limit <count>", description: "the newest, this many (default: 50)", minimum: 1, maximum: 1000 },
    ...LISTING,
  ],
  examples: [
    "hibernaut webhooks deliveries wh_0123456789abcdef",
    "hibernaut webhooks deliveries wh_0123456789abcdef --limit 200 -o wide",
  ],
  async run(context, [id = ""], { limit, ...options }) {
    const found = await (await context.client()).listWebhookDeliveries(id, limit === undefined ? {} : { limit });
    const listing = {
      head: ["EVENT", "TYPE", "APP", "STATE", "ATTEMPTS", "LAST", "STATUS", "NEXT"],
      row: (one: WebhookDelivery) => [
        String(one.sequence),
        one.type,
        one.app_name ?? "-",
        one.state,
        String(one.attempts),
        one.last_attempt_at === null ? "-" : ago(one.last_attempt_at),
        one.status === null ? "-" : String(one.status),
        one.next_attempt_at === null ? "-" : `in ${until(one.next_attempt_at)}`,
      ],
      wide: {
        head: ["MACHINE", "TOOK", "MESSAGE", "ERROR"],
        row: (one: WebhookDelivery) => [
          one.machine_id ?? "-",
          one.duration_ms === null ? "-" : `${one.duration_ms} ms`,
          one.message_id,
          one.error ?? "-",
        ],
      },
      spare: ["APP", "LAST"],
      id: ({ sequence }: WebhookDelivery) => String(sequence),
      empty: `Webhook ${id} was not sent anything lately.`,
    };
    return { document: found, text: listText(found, listing, options) };
  },
});

const enable = command({
  name: "enable",
  summary: "Enable a webhook again",
  description:
    "It gets what waited, and what happened while it was disabled. With --skip, only what happens from now on; this also drops what waits for a webhook that is enabled.",
  arguments: ID,
  options: [{ flags: "--skip", description: "drop what waits, and what happened meanwhile" }],
  examples: ["hibernaut webhooks enable wh_0123456789abcdef", "hibernaut webhooks enable wh_0123456789abcdef --skip"],
  async run(context, [id = ""], { skip = false }) {
    const webhook = await (await context.client()).updateWebhook(id, { enabled: true, skip });
    return { document: webhook, text: `Webhook ${id} is enabled.` };
  },
});

const disable = command({
  name: "disable",
  summary: "Send a webhook nothing until it is enabled again",
  arguments: ID,
  examples: ["hibernaut webhooks disable wh_0123456789abcdef"],
  async run(context, [id = ""]) {
    const webhook = await (await context.client()).updateWebhook(id, { enabled: false });
    return { document: webhook, text: `Webhook ${id} is disabled. Enable it: hibernaut webhooks enable ${id}` };
  },
});

const rotate = command({
  name: "rotate",
  summary: "Replace a webhook's secret, with time to change it at the receiver",
  description: "Prints the new secret, once. For a while, requests are signed with both.",
  arguments: ID,
  options: [
    {
      flags: "--keep <time>",
      description: "how long the old secret signs, too (default: 24h)",
      minimum: 0,
      maximum: 2_592_000,
      unit: "life",
    },
  ],
  examples: [
    "hibernaut webhooks rotate wh_0123456789abcdef",
    "hibernaut webhooks rotate wh_0123456789abcdef --keep 1h",
  ],
  async run(context, [id = ""], { keep }) {
    const rotated = await (await context.client()).rotateWebhook(id, keep === undefined ? {} : { overlap: keep });
    const { former_secret_until: end } = rotated;
    context.say(end === null ? "The old secret signs no more." : `The old secret signs until ${localTime(end)}, too.`);
    return { document: rotated, text: rotated.secret };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Remove a webhook, with its secret and what waits",
  arguments: ID,
  options: [YES],
  examples: ["hibernaut webhooks remove wh_0123456789abcdef"],
  async run(context, [id = ""], { yes = false }) {
    const client = await context.client();
    const { url } = await client.getWebhook(id);
    await agree(`This removes webhook ${id} to ${url}, with its secret and what waits.`, { yes, what: "deleted" });
    await client.removeWebhook(id);
    return { document: { id, ok: true }, text: `Removed webhook ${id}.` };
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
