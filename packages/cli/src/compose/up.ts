/**
 * Carries a plan out: each service once those are up that it depends on, and no more at once than the host can boot; first those that
 * most others wait for.
 */
import type { App, HibernautClient } from "@hibernaut/client";
import type { ProjectPlan, ServicePlan } from "@hibernaut/compose";
import { Context } from "../context.ts";
import { unlessGone } from "../deploy/preview-gone.ts";
import { CliError, Interrupted, toFailure } from "../failure.ts";
import { appsOf, isOfCompose } from "./apps.ts";
import { Builds } from "./builds.ts";
import { type Action, deployService, type ServiceOptions } from "./deploy-service.ts";
import { type PreviewTerms, preparePreviews } from "./previews.ts";
import { chainsBehind, Turns } from "./turns.ts";

/** Cold starts at once: each takes a CPU, and pulls an image. */
export const PARALLEL = 2;

export interface Outcome {
  service: string;
  app: string;
  /** `failed`: see the error. `skipped`: something that it depends on failed. */
  action: Action | "failed" | "skipped";
  error?: unknown;
}

interface UpOptions extends Omit<ServiceOptions, "builds">, PreviewTerms {
  parallel: number;
}

/** Returns what became of each service, in the order of the plan. Rejects before anything is changed if the project cannot be had. */
export async function up(context: Context, plan: ProjectPlan, options: UpOptions): Promise<Outcome[]> {
  const client = await context.client();
  const { network } = await client.getHealth();
  if (network.mode !== "bridge" && plan.apps.length > 1)
    throw new CliError(
      "failed_precondition",
      "The platform's network is in user mode, in which machines do not reach each other. Run the platform as root, with HIBERNAUT_NETWORK=bridge: see docs/network.md.",
    );
  await (plan.preview === undefined ? prepareApps(context, plan) : preparePreviews(context, plan, options));
  const turns = new Turns(options.parallel);
  // Those that most others wait for, so that the last ones do not start one by one at the end.
  const chains = chainsBehind(plan.apps);
  /** Ctrl-C ends what is under way, and nothing else begins. */
  const end = new AbortController();
  const done = new Map<string, Promise<Outcome>>();
  const builds = new Builds();
  for (const app of plan.apps) {
    const work = async (): Promise<Outcome> => {
      const before = await Promise.all(
        app.dependsOn.map(async (one) => ({ ...one, outcome: await done.get(one.service) })),
      );
      const { service } = app;
      const failed = before.find(({ required, outcome }) => required && isBad(outcome));
      if (failed !== undefined) return { service, app: app.app, action: "skipped" };
      const own = new Context({ json: context.json, app: app.app, about: service });
      try {
        const action = await turns.run(
          chains.get(service) ?? 0,
          () => deployService(own, app, { ...options, builds }),
          end.signal,
        );
        context.say(`${service}: ${action}`);
        return { service, app: app.app, action };
      } catch (failure) {
        const error = plan.preview === undefined ? failure : await unlessGone(own, failure);
        if (error instanceof Interrupted) end.abort(error);
        end.signal.throwIfAborted();
        context.say(`${service}: ${toFailure(error).message}`);
        return { service, app: app.app, action: "failed", error };
      }
    };
    done.set(app.service, work());
  }
  return Promise.all(done.values());
}

function isBad(outcome: Outcome | undefined): boolean {
  return outcome?.action === "failed" || outcome?.action === "skipped";
}

/** All names resolve before the first service asks for one. */
async function prepareApps(context: Context, plan: ProjectPlan): Promise<void> {
  const client = await context.client();
  const known = new Map((await client.listApps()).map((app) => [app.name, app]));
  for (const app of plan.apps) await requireOwn(client, plan, app, known.get(app.app));
  const changes = plan.apps.flatMap(({ app, aliases, wakes }) => {
    const network = known.get(app)?.network;
    const isSame = network !== undefined && same(network.aliases, aliases) && same(network.wakes, wakes);
    return network === undefined || isSame ? [] : [{ app, aliases, wakes, before: network.aliases }];
  });
  // Names that pass from one to another are free in between.
  for (const { app, aliases, before } of changes)
    await client.updateApp(app, { aliases: before.filter((alias) => aliases.includes(alias)) });
  for (const { app, aliases, wakes } of plan.apps) {
    if (known.has(app)) continue;
    await client.createApp(app, { network: plan.name, aliases, wakes });
    context.say(`Created app ${app}.`);
  }
  for (const { app, aliases, wakes } of changes) await client.updateApp(app, { aliases, wakes });
  const planned = new Set(plan.apps.map(({ app }) => app));
  for (const { name } of await appsOf(client, plan.name))
    if (!planned.has(name))
      context.warn(
        `App ${name} is in the project's network, and no service of the file. If nobody needs it: hibernaut apps destroy ${name}`,
      );
}

/** One that compose did not make could be anybody's, and so are machines in it. */
async function requireOwn(
  client: HibernautClient,
  { name }: ProjectPlan,
  { app }: ServicePlan,
  present: App | undefined,
): Promise<void> {
  if (present === undefined) return;
  const isInNetwork = present.network?.name === name;
  if (isInNetwork && (await client.listMachines(app)).every(isOfCompose)) return;
  const why = isInNetwork ? "has machines that no compose file describes" : `is not in the network ${name}`;
  throw new CliError(
    "already_exists",
    `App ${app} exists, and ${why}. Give the project another name with --project-name, or destroy the app: hibernaut apps destroy ${app}`,
  );
}

/** Whether two lists name the same, in whatever order. */
function same(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify(one.toSorted()) === JSON.stringify(other.toSorted());
}
