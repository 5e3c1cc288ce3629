/** `hibernaut apps` */
import type { App } from "@hibernaut/client";
import { agreeToLose, lossOf } from "../app-loss.ts";
import { command, type Noun } from "../command.ts";
import { YES } from "../confirming.ts";
import { LISTING, listText } from "../listing.ts";
import { urlsFrom } from "../answering.ts";
import { ago, lines } from "../terminal.ts";

const create = command({
  name: "create",
  summary: "Create an app",
  description: "An app owns machines and the address at which they answer.",
  arguments: [{ usage: "<name>", description: "lower-case letters, digits and dashes" }],
  examples: ["hibernaut apps create shop"],
  async run(context, [name = ""]) {
    const client = await context.client();
    const app = await client.createApp(name);
    const [url] = urlsFrom(client.apiUrl, app);
    return {
      document: app,
      text: lines(
        `Created app ${app.name}. Give it a machine: hibernaut machine run <image> --app ${app.name} --port <port>`,
        url && `It will answer at ${url}`,
      ),
    };
  },
});

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List apps",
  options: LISTING,
  examples: ["hibernaut apps list", "hibernaut apps list -o wide"],
  async run(context, _args, options) {
    const client = await context.client();
    const apps = await client.listApps();
    const listing = {
      head: ["NAME", "MACHINES", "CREATED"],
      row: (app: App) => [app.name, String(app.machine_count), ago(app.created_at)],
      wide: { head: ["ANSWERS AT"], row: (app: App) => [urlsFrom(client.apiUrl, app).join(", ") || "-"] },
      id: (app: App) => app.name,
      empty: "There are no apps yet. Create one: hibernaut apps create <name>",
    };
    return { document: apps, text: listText(apps, listing, options) };
  },
});

const destroy = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy an app",
  description:
    "An app that has machines or volumes is destroyed only with --force, together with them and the data on the volumes. On a terminal, the command lists them and asks first; elsewhere, it needs --yes if volumes would be deleted.",
  arguments: [{ usage: "<name>", description: "name of the app", names: "app" }],
  options: [
    {
      flags: "-f, --force",
      description: "destroy its machines first, running ones too, and its volumes with their snapshots",
    },
    YES,
  ],
  examples: ["hibernaut apps destroy shop", "hibernaut apps destroy shop --force"],
  async run(context, [name = ""], { force = false, yes = false }) {
    const client = await context.client();
    if (force) await agreeToLose(await lossOf(client, name), yes);
    await client.destroyApp(name, { force });
    return { document: { name, ok: true }, text: `Deleted app ${name}.` };
  },
});

/** The commands about apps. */
export const apps: Noun = {
  name: "apps",
  aliases: ["app"],
  summary: "Manage apps",
  commands: [create, list, destroy],
};
