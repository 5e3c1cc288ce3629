/** `hibernaut previews` */
import { urlsFrom } from "../answering.ts";
import { command, type Noun } from "../command.ts";
import { YES } from "../confirming.ts";
import { COPY_SECRETS, TTL } from "../deploy/preview-options.ts";
import { listCommand } from "../listing.ts";
import { given } from "../option-values.ts";
import { until } from "../terminal.ts";

const NAME = [{ usage: "<name>", description: "name of the preview, such as pr-12" }] as const;

const list = listCommand({
  summary: "List the previews of an app",
  ofApp: true,
  examples: ["hibernaut previews list --app shop", "hibernaut previews list -o wide --app shop"],
  fetch: (client, { app }) => client.listPreviews(app),
  show: ({ app }, _previews, { apiUrl }) => ({
    head: ["NAME", "APP", "MACHINES", "DESTROYED IN"],
    row: ({ name, machine_count: machines, preview }) => [
      preview?.name ?? "",
      name,
      String(machines),
      preview === undefined || preview.expired ? "a moment" : until(preview.expires_at),
    ],
    wide: { head: ["ANSWERS AT"], row: (each) => [urlsFrom(apiUrl, each).join(", ") || "-"] },
    id: ({ preview }) => preview?.name ?? "",
    empty: `App ${app} has no previews. Deploy one: hibernaut deploy --preview <name>`,
  }),
});

const create = command({
  name: "create",
  summary: "Create a preview without deploying to it, or renew one",
  description:
    "`hibernaut deploy --preview` does this by itself. Do it before if the preview needs secrets of its own: they are set for its app.",
  arguments: NAME,
  options: [TTL, COPY_SECRETS],
  ofApp: true,
  examples: ["hibernaut previews create pr-12 --app shop", "hibernaut secrets set API_KEY=test --app pr-12--shop"],
  async run(context, [name = ""], { ttl, copySecrets }) {
    const { app: of } = context;
    const client = await context.client();
    const app = await client.putPreview(of, name, given({ ttl, copy_secrets: copySecrets }));
    return {
      document: app,
      text: `App ${app.name} is preview ${name} of ${of}, until ${app.preview?.expires_at}. Deploy to it: hibernaut deploy --preview ${name}`,
    };
  },
});

const destroy = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy a preview",
  description:
    "Its machines and volumes are destroyed with it, and nothing of the app that it is a preview of. A preview of a compose project goes as a whole. On a terminal, the command lists them and asks first; elsewhere, it needs --yes if volumes would be deleted.",
  arguments: NAME,
  options: [YES],
  ofApp: true,
  examples: ["hibernaut previews destroy pr-12 --app shop", "hibernaut previews destroy pr-12 --yes --app shop"],
  async run(context, [name = ""], { yes = false }) {
    const client = await context.client();
    const found = (await client.listPreviews(context.app)).find(({ preview }) => preview?.name === name);
    // The platform says why there is none.
    if (found === undefined) await client.destroyPreview(context.app, name);
    const { destroyPreviews, togetherWith } = await import("../compose/previews.ts");
    const all = found === undefined ? [] : await togetherWith(client, found);
    const gone = await destroyPreviews(context, all, yes);
    const others = gone.length > 1 ? `, with the rest of its project: ${gone.join(", ")}` : "";
    return { document: { name, ok: true, apps: gone }, text: `Destroyed preview ${name} of ${context.app}${others}.` };
  },
});

export const previews: Noun = {
  name: "previews",
  aliases: ["preview"],
  summary: "Manage previews of an app, such as those of pull requests",
  commands: [list, create, destroy],
};
