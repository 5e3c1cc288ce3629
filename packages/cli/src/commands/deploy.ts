/** `hibernaut deploy` and `hibernaut releases`: turn an app file into running machines. */
import type { Machine, Release } from "@hibernaut/client";
import { answersAt } from "../answering.ts";
import type { Built } from "../build/build.ts";
import { BUILD_OPTIONS } from "../build/options.ts";
import { type Command, command, type Result, timeOption } from "../command.ts";
import type { Context } from "../context.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { STRATEGIES } from "../deploy/strategies.ts";
import type { Stage } from "../deploy/strategy.ts";
import { CliError, toFailure, UsageError } from "../failure.ts";
import { listText } from "../listing.ts";
import { given } from "../option-values.ts";
import { TABLE } from "../output-format.ts";
import { ago, lines } from "../terminal.ts";
import { insteadOfSuspend } from "../unsuspendable.ts";
import { provide, UPLOAD } from "../upload/provide.ts";

const DEFAULT_RELEASES = 25;

const deploy = command({
  name: "deploy",
  summary: "Deploy the app that the app file describes",
  description:
    "If neither the app file nor --image names an image, builds one from the directory of the app file. Runs the release_command of the app file, if there is one. Then creates or updates machines one at a time. A running machine is replaced and must pass its checks before the next one; a sleeping machine stays asleep, loses its snapshot and starts with the new version at the next request, or with --prewarm at once, to be checked, and to sleep again with a new snapshot. Running the command again continues an interrupted deploy.",
  options: [
    {
      flags: "-c, --config <file>",
      names: "file",
      description: "the app file (default: ./hibernaut.toml, or ./fly.toml)",
    },
    {
      flags: "--image <reference>",
      description: "image to run instead of the file's or a built one; an older one rolls back",
    },
    ...UPLOAD,
    { flags: "--build-only", description: "build the image, print its reference, and deploy nothing" },
    ...BUILD_OPTIONS,
    { flags: "-e, --env <NAME=value>", description: "environment variable; may repeat", repeats: true },
    {
      flags: "--strategy <strategy>",
      description: "rolling (default), immediate (all at once), canary or bluegreen",
      choices: STRATEGIES,
    },
    {
      flags: "--prewarm",
      description: "start sleeping machines with the new version, check them, and let them sleep again with a snapshot",
    },
    { flags: "--no-prewarm", description: "don't, although the app file says so" },
    { flags: "--skip-release-command", description: "don't run the release_command of the app file" },
    { flags: "--region <region>", description: "region to create machines in" },
    { flags: "--host <host>", description: "in a cluster, the host to create machines on (default: chosen for each)" },
    { flags: "--strict", description: "fail on keys of the app file that have no effect" },
    timeOption("--wait-timeout <time>", "how long a machine may take to pass its checks", WAIT_TIMEOUT_S),
  ],
  ofApp: true,
  appIsNamed: true,
  examples: [
    "hibernaut deploy",
    "hibernaut deploy --build-only",
    "hibernaut deploy --image registry.example.com/shop:v42",
    "hibernaut deploy --image docker-archive:./shop.tar",
    "hibernaut deploy --config fly.toml --image oci:/srv/shop:latest --strategy bluegreen",
  ],
  async run(named, _args, options) {
    const [
      { readDeployment, requireSecrets },
      { planDeploy },
      { runReleaseCommand },
      { reporting },
      { rollOut },
      { planStages, strategyRefusal },
      { ReleaseTemplates },
    ] = await Promise.all([
      import("../deploy/deployment.ts"),
      import("../deploy/plan.ts"),
      import("../deploy/release-command.ts"),
      import("../deploy/reporting.ts"),
      import("../deploy/rollout.ts"),
      import("../deploy/strategy.ts"),
      import("../deploy/release-templates.ts"),
    ]);
    if (options.buildOnly && options.image !== undefined)
      throw new UsageError("--build-only builds an image, and --image names one. Leave one of them out.");
    const deployment = await readDeployment(named, options);
    if (options.buildOnly) return buildResult(deployment.built);
    const { groups, deploy: asked, statusPage, release: before } = deployment;
    const strategy = options.strategy ?? asked.strategy ?? "rolling";
    const context = named.preferring(deployment.app);
    const client = await context.client();
    await ensureApp(context);
    await requireSecrets(context, groups);
    const { ref: image } = await provide(context, deployment.image, options);
    const release = await client.createRelease(context.app, { image });
    const done = await reporting(client, { app: context.app, version: release.version }, async () => {
      const plan = async () => planDeploy(groups, await client.listMachines(context.app), release);
      const refused = strategyRefusal(strategy, (await plan()).steps);
      if (refused !== undefined) throw new CliError("failed_precondition", refused);
      if (before !== undefined && !options.skipReleaseCommand) await runReleaseCommand(context, release, before);
      const { steps, others, leftovers, away } = await plan();
      for (const { id, host } of away)
        context.warn(
          `Host ${host} is unreachable, and its machine ${id} keeps its version. Deploy again once the host is back.`,
        );
      for (const { id } of others)
        context.say(`Machine ${id} is not in a process group of the app file and is left alone.`);
      if (options.host !== undefined && !steps.some(({ kind }) => kind === "create"))
        context.say(
          "No machine is created, so --host has no effect: machines stay where they are. `hibernaut machine move` moves one.",
        );
      const say = (step: string) => context.say(step);
      const templates = asked.template === true ? new ReleaseTemplates(context, release.version, say) : undefined;
      const cleared = await clearing(context, leftovers, release);
      const stages = planStages(steps, { strategy, maxUnavailable: asked.maxUnavailable });
      const results = await rollOut(context, [...cleared, ...stages], {
        place: given({ host: options.host, region: options.region }),
        waitTimeout: options.waitTimeout ?? asked.waitTimeout ?? WAIT_TIMEOUT_S,
        onStep: say,
        prewarm: prewarmOf(options.prewarm, asked.prewarm),
        templates,
      });
      await templates?.deleteEarlier();
      return results;
    });
    if (statusPage !== undefined) await client.updateApp(context.app, { status_page: statusPage });
    await warnOfUnsuspendable(context, new Set(done.map(({ machine_id: id }) => id)));
    const served = [...groups.values()].some(({ config }) => (config.services ?? []).length > 0);
    return {
      document: { release: release.version, image: release.image, machines: done },
      text: lines(
        `Deployed release ${release.version} of ${context.app}: ${summary(done)}.`,
        served && (await answersAt(context)),
      ),
    };
  },
});

const releases = command({
  name: "releases",
  summary: "List releases, newest first",
  description: "To roll back, run `hibernaut deploy --image <reference>` with an older image.",
  options: [
    { flags: "--limit <count>", description: `how many releases (default: ${DEFAULT_RELEASES})`, minimum: 1 },
    ...TABLE,
  ],
  ofApp: true,
  examples: ["hibernaut releases --app shop", "hibernaut releases --limit 1 -o wide --app shop"],
  async run(context, _args, { limit = DEFAULT_RELEASES, ...options }) {
    const list = await (await context.client()).listReleases(context.app, { limit });
    const listing = {
      head: ["VERSION", "STATUS", "IMAGE", "WHEN", "DESCRIPTION"],
      row: (release: Release) => [
        `v${release.version}`,
        release.status,
        release.image.ref,
        ago(release.created_at),
        release.description,
      ],
      wide: { head: ["DIGEST"], row: (release: Release) => [release.image.digest] },
      spare: ["WHEN"],
      id: (release: Release) => `v${release.version}`,
      empty: `App ${context.app} has no releases yet.`,
    };
    return { document: list, text: listText(list, listing, options) };
  },
});

function buildResult(built: Built | undefined): Result {
  if (built !== undefined) return { document: built, text: built.image };
  throw new CliError(
    "failed_precondition",
    "There is nothing to build, because the app file names an image. Remove `image` under [build] to build the directory.",
  );
}

/** The option only says whether: what the machines wait for is up to the app file. */
function prewarmOf(option: boolean | undefined, asked: boolean | "prepared" | undefined): boolean | "prepared" {
  if (option === false) return false;
  return asked === "prepared" ? asked : (option ?? asked ?? false);
}

/** Destroys what an interrupted deploy has left, unless a deploy is in progress to which it may belong. */
async function clearing(context: Context, leftovers: Machine[], { version }: Release): Promise<Stage[]> {
  if (leftovers.length === 0) return [];
  const list = await (await context.client()).listReleases(context.app);
  if (list.some((other) => other.status === "pending" && other.version !== version)) {
    for (const { id } of leftovers)
      context.say(`Machine ${id} belongs to another deploy, which has not ended yet, and is left alone.`);
    return [];
  }
  return [{ actions: leftovers.map((machine) => ({ do: "retire", machine, why: "leftover" })), undo: false }];
}

async function ensureApp(context: Context): Promise<void> {
  const { app } = context;
  const client = await context.client();
  try {
    // A token that is limited to the app may not create it.
    await client.getApp(app);
  } catch (missing) {
    if (toFailure(missing).error !== "not_found") throw missing;
    try {
      await client.createApp(app);
      context.say(`Created app ${app}.`);
    } catch (error) {
      const failure = toFailure(error).error;
      // The first sentence says which apps the token reaches.
      if (failure === "permission_denied") throw missing;
      if (failure !== "already_exists") throw error;
    }
  }
}

/** Warns of machines that should be suspended when they are idle, and cannot be; once for each reason. */
async function warnOfUnsuspendable(context: Context, ids: ReadonlySet<string>): Promise<void> {
  const machines = await (await context.client()).listMachines(context.app);
  const deployed = machines.filter(({ id }) => ids.has(id));
  for (const [instead, group] of Map.groupBy(deployed, insteadOfSuspend)) {
    if (instead === undefined) continue;
    const which = `Machine${group.length === 1 ? "" : "s"} ${group.map(({ id }) => id).join(", ")}`;
    context.warn(`${which}: auto_stop_machines is "suspend", but an idle machine ${instead}.`);
  }
}

function summary(machines: readonly { action: string }[]): string {
  const counts = Map.groupBy(machines, ({ action }) => action);
  return [...counts].map(([action, list]) => `${list.length} ${action}`).join(", ") || "no machines";
}

/** At the top level, because people type them most. */
export const deployCommands: readonly Command[] = [deploy, releases];
