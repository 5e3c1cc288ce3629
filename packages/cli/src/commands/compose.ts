/** `hibernaut compose`: a project of several services, as its compose file describes it. */
import type { LogEntry, Machine } from "@hibernaut/client";
import { type Command, command, type Noun, type Result, timeOption } from "../command.ts";
import { PROJECT, type ProjectOptions } from "../compose/options.ts";
import { YES } from "../confirming.ts";
import type { Context } from "../context.ts";
import { stateCell } from "../crashed.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { COPY_SECRETS, COPY_VOLUMES, TTL } from "../deploy/preview-options.ts";
import { LIMIT, SHORT_ID, SINCE } from "../entries.ts";
import { LISTING, listText } from "../listing.ts";
import { localWord, writtenTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { NO_PAGER } from "../pager.ts";
import { style } from "../terminal.ts";
import { UPLOAD } from "../upload/provide.ts";

const SERVICES = { usage: "[service...]", description: "only these services (default: all)" } as const;

const plan = command({
  name: "plan",
  aliases: ["config"],
  summary: "Show what a compose file becomes, and what of it is not carried",
  description:
    "Each service becomes an app, and all of them share a network in which they find and wake each other by name. Asks no platform and changes nothing.",
  options: PROJECT,
  examples: ["hibernaut compose plan", "hibernaut compose plan -f compose.yaml -f compose.prod.yaml --json"],
  async run(_context, _args, options) {
    return (await import("../compose/commands.ts")).planProject(options);
  },
});

const up = command({
  name: "up",
  summary: "Bring the services of a compose file up, or to what it says now",
  description:
    "Creates an app for each service, in a network of the project, builds or pulls its image, and starts it once those are up that it depends on. Services that have not changed are left as they are, asleep or awake.",
  options: [
    ...PROJECT,
    TTL,
    COPY_SECRETS,
    COPY_VOLUMES,
    ...UPLOAD,
    { flags: "-d, --detach", description: "has no effect: machines run without the command", hidden: true },
    { flags: "--build", description: "has no effect: images are always built", hidden: true },
    { flags: "--force-recreate", description: "deploy also services that have not changed" },
    {
      flags: "--parallel <count>",
      description: "how many services to deploy at once (default: 2)",
      minimum: 1,
      maximum: 16,
    },
    timeOption("--wait-timeout <time>", "how long a service may take to pass its checks", WAIT_TIMEOUT_S),
  ],
  examples: [
    "hibernaut compose up",
    "hibernaut compose up -f compose.yaml --profile web",
    "hibernaut compose up --preview pr-12 --ttl 7d",
    "hibernaut up",
  ],
  async run(context, _args, options) {
    return (await import("../compose/commands.ts")).upProject(context, options);
  },
});

/** The apps of the project that the options name, without reading more of its files than that needs. */
async function project(context: Context, options: ProjectOptions, words: readonly string[]) {
  const [{ requireApps, named }, { namesOf }] = await Promise.all([
    import("../compose/apps.ts"),
    import("../compose/load.ts"),
  ]);
  const { name, described } = namesOf(options);
  return {
    name,
    described,
    apps: named(await requireApps(await context.client(), name, options.preview), name, words),
  };
}

const down = command({
  name: "down",
  summary: "Destroy the machines of a project; with --volumes, also its data",
  description:
    "The apps are kept, with their volumes, secrets and hostnames, unless you say --volumes. What machines wrote elsewhere is lost. Apps in which there are machines that no compose file describes are left alone. With --preview, the preview is destroyed with all that it has.",
  options: [...PROJECT, { flags: "-v, --volumes", description: "destroy volumes as well, with their snapshots" }, YES],
  examples: ["hibernaut compose down", "hibernaut compose down --volumes --yes"],
  async run(context, _args, options) {
    const { volumes = false, yes = false, preview } = options;
    const found = await project(context, options, []);
    if (preview === undefined) return (await import("../compose/down.ts")).takeDown(context, found, { volumes, yes });
    const { destroyPreviews, ofPreview } = await import("../compose/previews.ts");
    const gone = await destroyPreviews(context, ofPreview(found.apps, preview), yes);
    return { document: { project: found.name, apps: gone }, text: `Destroyed preview ${preview}: ${gone.join(", ")}.` };
  },
});

const ps = command({
  name: "ps",
  aliases: ["ls"],
  summary: "List the machines of a project",
  arguments: [SERVICES],
  options: [...PROJECT, ...LISTING],
  examples: ["hibernaut compose ps", "hibernaut compose ps web db --json"],
  async run(context, words, options): Promise<Result> {
    const { name, apps } = await project(context, options, words);
    const { serviceOf } = await import("../compose/apps.ts");
    const client = await context.client();
    const machines = (await Promise.all(apps.map((app) => client.listMachines(app.name)))).flat();
    const listing = {
      head: ["SERVICE", "STATE", "MACHINE", "ADDRESS", "APP"],
      row: (machine: Machine) => [
        serviceOf(name, machine.app_name),
        stateCell(machine),
        machine.id,
        apps.find((app) => app.name === machine.app_name)?.network?.address ?? "-",
        machine.app_name,
      ],
      id: (machine: Machine) => machine.id,
      empty: `The project ${name} has no machines.`,
    };
    return { document: machines, text: listText(machines, listing, options) };
  },
});

const logs = command({
  name: "logs",
  summary: "Show what the services of a project print",
  description: "Each line shows its time in your time zone, its service, and the text, oldest first.",
  arguments: [SERVICES],
  options: [
    ...PROJECT.map((option) =>
      option.flags.startsWith("-f,") ? { ...option, flags: "--file <file>" as const } : option,
    ),
    { flags: "-f, --follow", description: "keep printing new lines" },
    SINCE,
    LIMIT,
    NO_PAGER,
  ],
  examples: ["hibernaut compose logs", "hibernaut compose logs db --follow"],
  async run(context, words, { follow = false, since, limit, pager, ...options }) {
    const { name, apps } = await project(context, options as ProjectOptions, words);
    const [{ followed, sorted }, { printEntries }, { serviceOf }] = await Promise.all([
      import("../compose/merged-logs.ts"),
      import("../entries.ts"),
      import("../compose/apps.ts"),
    ]);
    const client = await context.client();
    const width = Math.max(...apps.map((app) => serviceOf(name, app.name).length));
    const asked = given({ since: since && writtenTime(since), limit });
    const sources = apps.map((app) => ({
      service: serviceOf(name, app.name),
      entries: follow ? client.followLogs(app.name, asked) : client.readLogs(app.name, asked),
    }));
    const line = ({ service, at, machine, text }: LogEntry & { service: string }) =>
      [
        style("dim", localWord(at), process.stdout),
        style("bold", service.padEnd(width), process.stdout),
        style("dim", machine.slice(0, SHORT_ID), process.stdout),
        text,
      ].join(" ");
    return printEntries(context, follow ? followed(sources) : sorted(sources), line, { follow, pager });
  },
});

export const compose: Noun = {
  name: "compose",
  summary: "Run the services of a compose file, which sleep and wake each other",
  commands: [plan, up, ps, logs, down],
};

/** At the top level, because people type them most. */
export const composeCommands: readonly Command[] = [up, down].map((one) => ({
  ...one,
  hidden: true,
  examples: one.examples.map((example) => example.replace("hibernaut compose ", "hibernaut ")),
}));
