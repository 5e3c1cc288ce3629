/** `hibernaut webhooks`: what is done with one that there is. */
import type { WebhookDelivery } from "@hibernaut/client";
import { command } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import { CliError } from "../failure.ts";
import { LISTING, listText } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { ago, until } from "../terminal.ts";

/** The argument of every command about one webhook. */
export const ID = [{ usage: "<id>", description: "the webhook's id, from `webhooks list`", names: "webhook" }] as const;

export const test = command({
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

export const deliveries = command({
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
    const found = await (await context.client()).listWebhookDeliveries(id, given({ limit }));
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

export const enable = command({
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

export const disable = command({
  name: "disable",
  summary: "Send a webhook nothing until it is enabled again",
  arguments: ID,
  examples: ["hibernaut webhooks disable wh_0123456789abcdef"],
  async run(context, [id = ""]) {
    const webhook = await (await context.client()).updateWebhook(id, { enabled: false });
    return { document: webhook, text: `Webhook ${id} is disabled. Enable it: hibernaut webhooks enable ${id}` };
  },
});

export const rotate = command({
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
    const rotated = await (await context.client()).rotateWebhook(id, given({ overlap: keep }));
    const { former_secret_until: end } = rotated;
    context.say(end === null ? "The old secret signs no more." : `The old secret signs until ${localTime(end)}, too.`);
    return { document: rotated, text: rotated.secret };
  },
});

export const remove = command({
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
