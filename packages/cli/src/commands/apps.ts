/** `hibernaut apps` */
import type { App, Quota, UpdateQuotaRequest } from "@hibernaut/client";
import { urlsFrom } from "../answering.ts";
import { agreeToLose, lossOf } from "../app-loss.ts";
import { command, type Noun } from "../command.ts";
import { YES } from "../confirming.ts";
import { UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { given } from "../option-values.ts";
import { ago, fields, lines, table, until } from "../terminal.ts";

const NAME = { usage: "<name>", description: "name of the app", names: "app" } as const;

const create = command({
  name: "create",
  summary: "Create an app",
  description:
    "An app owns machines and the address at which they answer. In a network, its machines and those of the other apps of the network reach each other, by the names of the apps and their aliases, and wake each other.",
  arguments: [{ usage: "<name>", description: "lower-case letters, digits and dashes" }],
  options: [
    { flags: "--network <name>", description: "share a network with the apps that name the same one, from now on" },
    { flags: "--alias <name>", description: "another name of it in the network; may repeat", repeats: true },
  ],
  examples: ["hibernaut apps create shop", "hibernaut apps create shop-db --network shop --alias db"],
  async run(context, [name = ""], { network, alias: aliases }) {
    const client = await context.client();
    const app = await client.createApp(name, given({ network, aliases }));
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

const list = listCommand({
  summary: "List apps",
  examples: ["hibernaut apps list", "hibernaut apps list -o wide"],
  fetch: (client) => client.listApps(),
  show: (_context, _apps, { apiUrl }) => ({
    head: ["NAME", "MACHINES", "CREATED"],
    row: (app) => [app.name, String(app.machine_count), ago(app.created_at)],
    wide: {
      head: ["ANSWERS AT", "PREVIEW OF", "DESTROYED IN"],
      row: (app) => [
        urlsFrom(apiUrl, app).join(", ") || "-",
        app.preview?.of ?? "-",
        app.preview === undefined ? "-" : until(app.preview.expires_at),
      ],
    },
    id: (app) => app.name,
    empty: "There are no apps yet. Create one: hibernaut apps create <name>",
  }),
});

const show = command({
  name: "show",
  summary: "Show an app, and what it has of its quota",
  arguments: [NAME],
  examples: ["hibernaut apps show shop"],
  async run(context, [name = ""]) {
    const client = await context.client();
    const [app, quota] = await Promise.all([client.getApp(name), client.getQuota(name)]);
    const about = fields([
      ["Name", app.name],
      ["Created", ago(app.created_at)],
      ["Answers at", urlsFrom(client.apiUrl, app).join(", ") || "-"],
      ...(app.closed_ports ?? []).map(({ port, reason }) => ["Closed port", `${port}: ${reason}`] as const),
      ...(app.network === undefined ? [] : [["Network", networkText(app.network)] as const]),
      ...previewRows(app),
      ["Status page", app.status_page ? statusUrl(client.apiUrl, app) : "off"],
    ]);
    return { document: { ...app, quota }, text: lines(about, quotaText(quota)) };
  },
});

const update = command({
  name: "update",
  summary: "Change how much an app may have, and who may see how it is",
  description:
    "Changes the app's own limits. Those that you don't name stay. 0 means without limit. What the app has already stays, also beyond a new limit. With --status-page on, anyone may see whether the app is up; with off, nobody.",
  arguments: [NAME],
  options: [
    { flags: "--max-machines <count>", description: "machines", minimum: 0 },
    { flags: "--max-running <count>", description: "machines that run at once", minimum: 0 },
    { flags: "--max-cpus <count>", description: "CPUs of all its machines", minimum: 0 },
    { flags: "--max-memory <size>", description: "memory of all its machines, such as 4gb", minimum: 0, unit: "mb" },
    { flags: "--max-volumes <size>", description: "volumes, such as 50gb", minimum: 0, unit: "gb" },
    { flags: "--max-hostnames <count>", description: "hostnames", minimum: 0 },
    { flags: "--max-certificates <count>", description: "certificates", minimum: 0 },
    { flags: "--max-previews <count>", description: "previews", minimum: 0 },
    { flags: "--default-limits", description: "first replace all its own limits by those of the platform" },
    { flags: "--status-page <on|off>", description: "whether anyone may see how the app is", choices: ["on", "off"] },
  ],
  examples: [
    "hibernaut apps update shop --max-running 20 --max-memory 64gb",
    "hibernaut apps update shop --default-limits",
    "hibernaut apps update shop --status-page on",
  ],
  async run(context, [name = ""], { defaultLimits = false, statusPage, ...limits }) {
    const { maxMachines, maxRunning, maxCpus, maxMemory, maxVolumes, maxHostnames, maxCertificates, maxPreviews } =
      limits;
    const limited = {
      machines: maxMachines,
      running: maxRunning,
      cpus: maxCpus,
      memory_mb: maxMemory,
      volume_gb: maxVolumes,
      hostnames: maxHostnames,
      certificates: maxCertificates,
      previews: maxPreviews,
    };
    const changes = Object.entries(limited).map(([key, value]) => [key, value ?? (defaultLimits ? null : undefined)]);
    const isLimited = changes.some(([, value]) => value !== undefined);
    if (!isLimited && statusPage === undefined)
      throw new UsageError("Nothing to change. Add a limit, such as --max-running 2; see --help.");
    const client = await context.client();
    const quota = isLimited
      ? await client.updateQuota(name, Object.fromEntries(changes) as UpdateQuotaRequest)
      : await client.getQuota(name);
    if (statusPage === undefined) return { document: quota, text: quotaText(quota) };
    const app = await client.updateApp(name, { status_page: statusPage === "on" });
    const shown = app.status_page ? `Anyone may see how ${name} is: ${statusUrl(client.apiUrl, app)}` : undefined;
    return {
      document: { ...quota, status_page: app.status_page },
      text: lines(shown ?? `Nobody may see how ${name} is.`, isLimited && quotaText(quota)),
    };
  },
});

function previewRows({ preview }: App): [string, string][] {
  if (preview === undefined) return [];
  const time = preview.expired ? "now: its time is over" : `in ${until(preview.expires_at)}, at ${preview.expires_at}`;
  return [
    ["Preview of", preview.of],
    ["Destroyed", `${time}, unless it is deployed again`],
  ];
}

function networkText({ name, address, aliases }: NonNullable<App["network"]>): string {
  return `${name}, at ${address}${aliases.length === 0 ? "" : `, also as ${aliases.join(", ")}`}`;
}

/** The address of an app's status page at the API. Visitors may not be able to reach the API there. */
function statusUrl(apiUrl: string, { name }: App): string {
  return `${apiUrl.replace(/\/+$/, "")}/status/${name}`;
}

function quotaText({ limits, used, own }: Quota): string {
  const row = (label: string, key: keyof Quota["limits"], unit = ""): string[] => [
    label,
    `${used[key]}${unit}`,
    limits[key] === 0 ? "no limit" : `${limits[key]}${unit}`,
    own.includes(key) ? "app" : "platform",
  ];
  return table([
    ["QUOTA", "USED", "LIMIT", "SET FOR"],
    row("machines", "machines"),
    row("running", "running"),
    row("cpus", "cpus"),
    row("memory", "memory_mb", " MB"),
    row("volumes", "volume_gb", " GB"),
    row("hostnames", "hostnames"),
    row("certificates", "certificates"),
    row("previews", "previews"),
  ]);
}

const destroy = command({
  name: "destroy",
  aliases: ["rm"],
  summary: "Destroy an app",
  description:
    "An app that has machines or volumes is destroyed only with --force, together with them and the data on the volumes. On a terminal, the command lists them and asks first; elsewhere, it needs --yes if volumes would be deleted.",
  arguments: [NAME],
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
    if (force) await agreeToLose([await lossOf(client, name)], yes);
    await client.destroyApp(name, { force });
    return { document: { name, ok: true }, text: `Deleted app ${name}.` };
  },
});

export const apps: Noun = {
  name: "apps",
  aliases: ["app"],
  summary: "Manage apps",
  commands: [create, list, show, update, destroy],
};
