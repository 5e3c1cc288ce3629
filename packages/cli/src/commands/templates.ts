/** `hibernaut templates` */
import type { Template } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { listCommand } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { quantityArgument } from "../quantity.ts";
import { ago, fields, megabytes } from "../terminal.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const TEMPLATE = [{ usage: "<id>", description: "the template: id, name, or beginning of the id" }];

const create = command({
  name: "create",
  summary: "Make a template of a machine",
  description:
    "Keeps the memory and the disk that a running or suspended machine has at this moment. The machine itself continues; a running one pauses for a moment.",
  arguments: [MACHINE],
  options: [
    { flags: "-n, --name <name>", description: "name of the template, unique within the app" },
    {
      flags: "--pool <number>",
      description: "how many machines to keep asleep, ready to be taken (default: 0)",
      minimum: 0,
    },
  ],
  ofApp: true,
  examples: [
    "hibernaut templates create 3f9c01ab22de41 --name ready --app shop",
    "hibernaut templates create web-1 --name ready --pool 3 --app shop",
  ],
  async run(context, [word], { name, pool }) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const making = client.createTemplate(context.app, { from: id, ...given({ name, warm_pool: pool }) });
    const template = await context.progress(`Making a template of machine ${id}`, making);
    const text = `Made template ${template.id} (${template.name}, ${megabytes(template.size_bytes)}). Make machines from it: hibernaut machine run --template ${template.name}`;
    return { document: template, text };
  },
});

const list = listCommand({
  summary: "List the templates of an app",
  ofApp: true,
  examples: ["hibernaut templates list --app shop"],
  fetch: (client, { app }) => client.listTemplates(app),
  show({ app }, templates) {
    const inCluster = templates.some(({ hosts }) => hosts !== undefined);
    return {
      head: ["ID", "NAME", "OF MACHINE", "MACHINES", ...(inCluster ? ["HOSTS"] : ["POOL"]), "SIZE", "CREATED"],
      row: (template) => [
        template.id,
        template.name,
        template.machine_id,
        String(template.machines.length),
        inCluster ? hostsText(template) : poolText(template),
        megabytes(template.size_bytes),
        ago(template.created_at),
      ],
      spare: ["OF MACHINE"],
      id: ({ id }) => id,
      empty: `App ${app} has no templates.`,
    };
  },
});

const show = command({
  name: "show",
  summary: "Show a template",
  arguments: TEMPLATE,
  ofApp: true,
  examples: ["hibernaut templates show ready --app shop"],
  async run(context, [word = ""]) {
    const template = await (await context.client()).getTemplate(context.app, word);
    return { document: template, text: templateText(template) };
  },
});

function templateText(template: Template): string {
  return fields([
    ["template", `${template.id} (${template.name})`],
    ["app", template.app_name],
    ["image", template.image.ref],
    ["of machine", template.machine_id],
    ["machines", template.machines.join(", ") || "none"],
    ...(template.hosts === undefined
      ? ([["pool", poolText(template)]] as const)
      : ([["hosts", hostsText(template)]] as const)),
    ["size", megabytes(template.size_bytes)],
    ["created", localTime(template.created_at)],
  ]);
}

function hostsText({ hosts = [] }: Template): string {
  return hosts.join(", ");
}

function poolText({ pool: { size, ready, warm, reason } }: Template): string {
  if (size === 0 && ready === 0) return "none";
  const counts = `${ready} of ${size} ready, ${warm} in memory`;
  return reason === null ? counts : `${counts}: ${reason}`;
}

const pool = command({
  name: "pool",
  summary: "Keep machines of a template asleep, ready to be taken",
  description:
    "Machines of the template are made in advance, and sleep. A machine that is made from the template is then one of them, which only has to wake, and another one takes its place. Each takes what a sleeping machine takes, and counts in the app's quotas.",
  arguments: [...TEMPLATE, { usage: "<number>", description: "how many machines to keep; 0 for none" }],
  ofApp: true,
  examples: ["hibernaut templates pool ready 3 --app shop", "hibernaut templates pool ready 0 --app shop"],
  async run(context, [word = "", text = ""]) {
    const size = quantityArgument(text, { minimum: 0 });
    const template = await (await context.client()).setTemplatePool(context.app, word, size);
    return { document: template, text: `Template ${template.name}: ${poolText(template)}.` };
  },
});

const remove = command({
  name: "delete",
  aliases: ["rm"],
  summary: "Delete a template",
  description: "The machines that were made from it stay as they are.",
  arguments: TEMPLATE,
  ofApp: true,
  examples: ["hibernaut templates delete ready --app shop"],
  async run(context, [word = ""]) {
    let away: string[] = [];
    await (await context.client()).deleteTemplate(context.app, word, { onMissing: (hosts) => (away = hosts) });
    const left = away.map((host) => ` Host ${host} has a copy still, and deletes it when it is back.`);
    return { document: { ok: true }, text: `Deleted template ${word}.${left.join("")}` };
  },
});

export const templates: Noun = {
  name: "templates",
  aliases: ["template"],
  summary: "Keep the state of a machine, to make machines from",
  commands: [create, list, show, pool, remove],
};
