/** `hibernaut hostnames` */
import { AGREE_TERMS, addAndWait, certificateText } from "../certificates.ts";
import { command, type Noun } from "../command.ts";
import { LISTING } from "../listing.ts";
import { lines } from "../terminal.ts";
import { WAITING } from "../waiting.ts";

const HOSTNAME = { usage: "<hostname>", description: "e.g. www.example.com" };

const add = command({
  name: "add",
  summary: "Add a custom hostname to an app",
  description: "Requests at the proxy with this Host header go to the app, as those for <app>.localhost do.",
  arguments: [HOSTNAME],
  options: [{ flags: "--tls", description: "also get a certificate, as `certs add` does" }, AGREE_TERMS, ...WAITING],
  ofApp: true,
  examples: [
    "hibernaut hostnames add www.example.com --app shop",
    "hibernaut hostnames add www.example.com --tls --app shop",
  ],
  async run(context, [hostname = ""], { tls = false, ...options }) {
    const name = await (await context.client()).addHostname(context.app, hostname);
    const text = `App ${context.app} answers for ${name}.`;
    if (!tls) return { document: { hostname: name }, text };
    const certificate = await addAndWait(context, name, options);
    return { document: { hostname: name, certificate }, text: lines(text, certificateText(certificate)) };
  },
});

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List the custom hostnames of an app",
  options: LISTING,
  ofApp: true,
  examples: ["hibernaut hostnames list --app shop"],
  async run(context, _args, { quiet = false }) {
    const names = await (await context.client()).listHostnames(context.app);
    const text = names.length === 0 && !quiet ? `App ${context.app} has no custom hostnames.` : names.join("\n");
    return { document: names, text };
  },
});

const remove = command({
  name: "remove",
  aliases: ["rm"],
  summary: "Remove a custom hostname from an app",
  arguments: [{ ...HOSTNAME, names: "hostname" }],
  ofApp: true,
  examples: ["hibernaut hostnames remove www.example.com --app shop"],
  async run(context, [hostname = ""]) {
    await (await context.client()).removeHostname(context.app, hostname);
    return { document: { hostname, ok: true }, text: `App ${context.app} no longer answers for ${hostname}.` };
  },
});

export const hostnames: Noun = {
  name: "hostnames",
  aliases: ["hostname"],
  summary: "Manage custom hostnames",
  commands: [add, list, remove],
};
