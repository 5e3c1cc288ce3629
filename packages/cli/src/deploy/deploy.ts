/** Carries out `hibernaut deploy`: a release of what the app file describes. */
import type { Machine, Release } from "@hibernaut/client";
import { answersAt } from "../answering.ts";
import type { Built } from "../build/build.ts";
import type { Result } from "../command.ts";
import type { Context } from "../context.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { CliError, Interrupted, toFailure } from "../failure.ts";
import { given } from "../option-values.ts";
import { lines } from "../terminal.ts";
import { insteadOfSuspend } from "../unsuspendable.ts";
import { provide } from "../upload/provide.ts";
import { type Deployment, type DeploymentOptions, readDeployment, requireSecrets } from "./deployment.ts";
import { FoundPort, foundPort, hasWorked } from "./found-port.ts";
import { DoesNotWork } from "./healthy.ts";
import { planDeploy } from "./plan.ts";
import { type PreviewOptions, preparePreview } from "./preview.ts";
import { unlessGone } from "./preview-gone.ts";
import { runReleaseCommand } from "./release-command.ts";
import { ReleaseTemplates } from "./release-templates.ts";
import { reporting } from "./reporting.ts";
import { rollOut } from "./rollout.ts";
import type { Strategy } from "./strategies.ts";
import { planStages, type Stage, strategyRefusal } from "./strategy.ts";

interface DeployOptions extends DeploymentOptions, Omit<PreviewOptions, "preview"> {
  upload?: boolean;
  strategy?: Strategy;
  prewarm?: boolean;
  skipReleaseCommand?: boolean;
  region?: string;
  host?: string;
  waitTimeout?: number;
}

/** Deploys. If the app file names no port, and the app listens on another than was assumed, deploys once more with that. */
export async function deployFindingPort(named: Context, options: DeployOptions): Promise<Result> {
  try {
    return await deployOnce(named, options);
  } catch (error) {
    if (!(error instanceof FoundPort)) throw error;
    const { port } = error;
    // The image differs in its variable PORT at most.
    return deployOnce(named, { ...options, port, skipReleaseCommand: true });
  }
}

async function deployOnce(named: Context, options: DeployOptions): Promise<Result> {
  const deployment = await readDeployment(named, options);
  if (options.buildOnly) return buildResult(deployment.built);
  const production = named.preferring(deployment.app);
  const context = production.inPreview(options.preview);
  const portOf = (machineId: string) => foundPort(context, machineId, options.config);
  if (context === production) {
    await ensureApp(context);
    return (await carryOut(context, deployment, { ...options, portOf })).result;
  }
  const { app: preview, deployment: own } = await preparePreview(production, deployment, options);
  const { result } = await carryOut(context, own, { ...options, portOf }).catch(async (error: unknown) => {
    throw await unlessGone(context, error);
  });
  return { ...result, document: { ...(result.document as object), preview } };
}

/** How a deployment is carried out. */
interface CarryingOut extends Omit<DeployOptions, keyof DeploymentOptions> {
  /** Where the app was found to listen already. */
  port?: number | undefined;
  /** Finds the port of an app that does not listen where it should. By default, nobody looks. */
  portOf?(machineId: string): Promise<number | undefined>;
}

/** Deploys to an app that exists. Rejects with {@link FoundPort} when another port has to be tried. */
export async function carryOut(
  context: Context,
  deployment: Deployment,
  options: CarryingOut,
): Promise<{ result: Result; machines: { machine_id: string; action: string }[] }> {
  const { groups, deploy: asked, statusPage, release: before } = deployment;
  const strategy = options.strategy ?? asked.strategy ?? "rolling";
  const client = await context.client();
  await requireSecrets(context, groups);
  const { ref: image } = await provide(context, deployment.image, options);
  const untried = !(await hasWorked(context));
  const release = await client.createRelease(context.app, { image });
  const done = await reporting(client, { app: context.app, version: release.version }, async () => {
    const plan = async () => planDeploy(groups, await client.listMachines(context.app), release, { untried });
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
    }).catch(async (error: unknown) => {
      // Only once: an app that moves from port to port has none that a file could name.
      if (!(error instanceof DoesNotWork) || options.port !== undefined) throw error;
      const port = await options.portOf?.(error.machineId).catch((failure: unknown) => {
        if (failure instanceof Interrupted) throw failure;
        // What went wrong counts, also if nobody can be asked any more.
        return undefined;
      });
      throw port === undefined ? error : new FoundPort(port);
    });
    await templates?.deleteEarlier(groups.keys());
    return results;
  });
  if (statusPage !== undefined) await client.updateApp(context.app, { status_page: statusPage });
  await warnOfUnsuspendable(context, new Set(done.map(({ machine_id: id }) => id)));
  const served = [...groups.values()].some(({ config }) => (config.services ?? []).length > 0);
  const result = {
    document: { release: release.version, image: release.image, machines: done },
    text: lines(
      `Deployed release ${release.version} of ${context.app}: ${summary(done)}.`,
      served && (await answersAt(context)),
    ),
  };
  return { result, machines: done };
}

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
