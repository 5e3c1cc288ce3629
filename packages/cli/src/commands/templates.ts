/** `hibernaut templates` */
import type { Template } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { listCommand } from "../listing.ts";
import { localTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { ago, fields, megabytes } from "../terminal.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const TEMPLATE = [{ usage: "<id>", description: "the template: id, name, or beginning of the id" }];

const create = command({
  name: "create",
  summary: "Make a template of a machine",
  description:
    "Keeps the memory and the disk that a running or suspended machine has at this moment. The machine itself continues; a running one pauses for a moment.",
  arguments: [MACHINE],
  options: [{ flags: "-n, --name <name>", description: "name of the template, unique within the app" }],
  ofApp: true,
  examples: ["hibernaut templates create 3f9c01ab22de41 --name ready --app shop"],
  async run(context, [word], { name }) {
    const client = await context.client();
    const { id } = await machineOf(context, word);
    const making = client.createTemplate(context.app, { from: id, ...given({ name }) });
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
  show: ({ app }, _templates) => ({
    head: ["ID", "NAME", "OF MACHINE", "MACHINES", "SIZE", "CREATED"],
    row: (template) => [
      template.id,
      template.name,
      template.machine_id,
      String(template.machines.length),
      megabytes(template.size_bytes),
      ago(template.created_at),
    ],
    spare: ["OF MACHINE"],
    id: ({ id }) => id,
    empty: `App ${app} has no templates.`,
  }),
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
    ["size", megabytes(template.size_bytes)],
    ["created", localTime(template.created_at)],
  ]);
}

const remove = command({
  name: "delete",
  aliases: ["rm"],
  summary: "Delete a template",
  description: "The machines that were made from it stay as they are.",
  arguments: TEMPLATE,
  ofApp: true,
  examples: ["hibernaut templates delete ready --app shop"],
  async run(context, [word = ""]) {
    await (await context.client()).deleteTemplate(context.app, word);
    return { document: { ok: true }, text: `Deleted template ${word}.` };
  },
});

export const templates: Noun = {
  name: "templates",
  aliases: ["template"],
  summary: "Keep the state of a machine, to make machines from",
  commands: [create, list, show, remove],
};
