/** `hibernaut hostnames` */
import { command, type Noun } from "../command.ts";
import { type ListOptions, QUIET } from "../listing.ts";

const HOSTNAME = [{ usage: "<hostname>", description: "e.g. www.example.com" }];

const add = command({
  name: "add",
  summary: "Let an app answer for a host name",
  description: "Requests at the proxy with this Host go to the app, as those with <app>.localhost do.",
  arguments: HOSTNAME,
  ofApp: true,
  examples: ["hibernaut hostnames add www.example.com --app shop"],
  async run(context, [hostname = ""]) {
    const name = await (await context.client()).addHostname(context.app, hostname);
    return { document: { hostname: name }, text: `App ${context.app} answers for ${name}.` };
  },
});

const list = command<ListOptions>({
  name: "list",
  aliases: ["ls"],
  summary: "List the host names of an app",
  options: [QUIET],
  ofApp: true,
  examples: ["hibernaut hostnames list --app shop"],
  async run(context, _args, { quiet = false }) {
    const names = await (await context.client()).listHostnames(context.app);
    const text = names.length === 0 && !quiet ? `App ${context.app} has no host names of its own.` : names.join("\n");
    return { document: names, text };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Take a host name back",
  arguments: HOSTNAME,
  ofApp: true,
  examples: ["hibernaut hostnames remove www.example.com --app shop"],
  async run(context, [hostname = ""]) {
    await (await context.client()).removeHostname(context.app, hostname);
    return { document: { hostname, ok: true }, text: `App ${context.app} no longer answers for ${hostname}.` };
  },
});

/** The commands about host names. */
export const hostnames: Noun = {
  name: "hostnames",
  aliases: ["hostname"],
  summary: "Host names of their own under which apps answer",
  commands: [add, list, remove],
};
