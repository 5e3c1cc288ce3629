/** `hibernaut apps` */
import type { App } from "@hibernaut/client";
import { agreeToLose, lossOf } from "../app-loss.ts";
import { command, type Noun } from "../command.ts";
import { YES } from "../confirming.ts";
import { listText, type ListOptions, QUIET } from "../listing.ts";
import { urlsFrom } from "../answering.ts";
import { ago, lines } from "../terminal.ts";

const create = command({
  name: "create",
  summary: "Create an app",
  description: "An app is a name that owns machines and the address under which they answer.",
  arguments: [{ usage: "<name>", description: "lower case letters, digits and dashes" }],
  examples: ["hibernaut apps create shop"],
  async run(context, [name = ""]) {
    const client = await context.client();
    const app = await client.createApp(name);
    const [url] = urlsFrom(client.apiUrl, app);
    return {
      document: app,
      text: lines(
        `App ${app.name} is created. Give it a machine: hibernaut machine run <image> --app ${app.name} --port <port>`,
        url && `It will answer at ${url}`,
      ),
    };
  },
});

const list = command<ListOptions>({
  name: "list",
  aliases: ["ls"],
  summary: "List apps",
  options: [QUIET],
  examples: ["hibernaut apps list", "hibernaut apps list --json"],
  async run(context, _args, options) {
    const apps = await (await context.client()).listApps();
    const listing = {
      head: ["NAME", "MACHINES", "CREATED"],
      row: (app: App) => [app.name, String(app.machine_count), ago(app.created_at)],
      id: (app: App) => app.name,
      empty: "There is no app yet. Make one: hibernaut apps create <name>",
    };
    return { document: apps, text: listText(apps, listing, options) };
  },
});

const destroy = command<{ force?: boolean; yes?: boolean }>({
  name: "destroy",
  aliases: ["rm"],
  summary: "Delete an app",
  description:
    "An app with machines or volumes is deleted with --force only, and they with it, and what is on the volumes. On a terminal it lists them and asks; elsewhere it needs --yes where volumes would go.",
  arguments: [{ usage: "<name>", description: "name of the app" }],
  options: [
    {
      flags: "-f, --force",
      description: "destroy its machines first, also running ones, and its volumes with their snapshots",
    },
    YES,
  ],
  examples: ["hibernaut apps destroy shop", "hibernaut apps destroy shop --force"],
  async run(context, [name = ""], { force = false, yes = false }) {
    const client = await context.client();
    if (force) await agreeToLose(await lossOf(client, name), yes);
    await client.destroyApp(name, { force });
    return { document: { name, ok: true }, text: `App ${name} is gone.` };
  },
});

/** The commands about apps. */
export const apps: Noun = {
  name: "apps",
  aliases: ["app"],
  summary: "Create, list and destroy apps",
  commands: [create, list, destroy],
};
