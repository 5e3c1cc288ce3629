/** Previews of a project: one of each of its apps, in a network of their own, which come and go together. */
import type { App, HibernautClient } from "@hibernaut/client";
import type { ProjectPlan } from "@hibernaut/compose";
import { agreeToLose, lossOf } from "../app-loss.ts";
import { Context } from "../context.ts";
import { copyVolumesTo } from "../deploy/preview.ts";
import { CliError, toFailure } from "../failure.ts";
import { given } from "../option-values.ts";
import { count } from "../terminal.ts";
import { appsOf } from "./apps.ts";
import { GROUP } from "./deploy-service.ts";

/** For how long a preview is kept, and what it gets of the project. */
export interface PreviewTerms {
  /** Seconds. */
  ttl?: number;
  copySecrets?: boolean;
  copyVolumes?: boolean;
}

/** One app of the preview. */
interface Wanted {
  app: string;
  of: string;
  name: string;
  service: string;
  aliases: string[];
  wakes: string[];
}

/**
 * Makes or renews the apps of a preview, all before the first service asks for one of the names. If one of them cannot be had, those
 * that this made are destroyed again.
 */
export async function preparePreviews(context: Context, plan: ProjectPlan, terms: PreviewTerms): Promise<void> {
  const client = await context.client();
  const { name = "", of: project = "" } = plan.preview ?? {};
  const before = new Map((await client.listApps()).map((app) => [app.name, app]));
  const wanted = plan.apps.map(({ app, previewOf: of = "", service, aliases, wakes }) => ({
    ...{ app, of, name, service, aliases, wakes },
  }));
  const made: Wanted[] = [];
  try {
    // Names that pass from one to another are free in between.
    for (const one of wanted) {
      const aliases = before.get(one.app)?.network?.aliases ?? [];
      const kept = aliases.filter((alias) => one.aliases.includes(alias));
      if (kept.length < aliases.length) await put(client, { ...one, aliases: kept }, { ...terms, project });
    }
    const apps: App[] = [];
    for (const one of wanted) {
      const app = await put(client, one, { ...terms, project });
      if (!before.has(one.app)) made.push(one);
      requireIn(plan.name, app, one);
      apps.push(app);
    }
    if (terms.copyVolumes) await copyAll(context, plan);
    tell(context, plan, apps, terms);
  } catch (error) {
    for (const one of made) await unmake(client, one).catch(() => {}); // its time ends by itself
    throw error;
  }
  for (const { name: app, network } of before.values())
    if (network?.name === plan.name && !wanted.some((one) => one.app === app))
      context.say(
        `The file has no service for app ${app} any more, so it is not renewed: it goes when its time is over.`,
      );
}

/** A production that two projects could have given its name, `a` with `b-c` and `a-b` with `c`, is that of the other one. */
function requireIn(network: string, { name, network: present }: App, { of, service }: Wanted): void {
  if (present?.name === network) return;
  throw new CliError(
    "failed_precondition",
    `App ${of} is not that of the service ${service}: it is in another network than the project, and so is its preview ${name}. Give the project another name with --project-name.`,
  );
}

/** Destroys one that was made for nothing. Another command that began at the same moment may deploy to it already. */
async function unmake(client: HibernautClient, { app, of, name }: Wanted): Promise<void> {
  if ((await client.listMachines(app)).length === 0) await client.destroyPreview(of, name);
}

async function put(
  client: HibernautClient,
  { of, name, aliases, wakes, service }: Wanted,
  { ttl, copySecrets, project }: PreviewTerms & { project: string },
): Promise<App> {
  const place = { network: true, aliases, wakes };
  try {
    return await client.putPreview(of, name, { ...place, ...given({ ttl, copy_secrets: copySecrets }) });
  } catch (error) {
    const { error: code, message } = toFailure(error);
    if (code !== "not_found") throw error;
    throw new CliError(
      code,
      `The service ${service} has no app yet that could have a preview: ${message} Bring the project up, or make the app alone: hibernaut apps create ${of} --network ${project}`,
    );
  }
}

async function copyAll({ json }: Context, { apps }: ProjectPlan): Promise<void> {
  for (const { app, previewOf, service, config } of apps)
    if (previewOf !== undefined)
      await copyVolumesTo(new Context({ json, app: previewOf, about: service }), app, new Map([[GROUP, { config }]]));
}

function tell(context: Context, { preview }: ProjectPlan, apps: readonly App[], { copySecrets }: PreviewTerms): void {
  const [first] = apps;
  context.say(
    `Preview ${preview?.name} of project ${preview?.of} has ${count(apps.length, "app")}, which are destroyed ${first?.preview?.expires_at}, with their machines and volumes, unless it is brought up again.`,
  );
  if (copySecrets)
    context.say(
      `It has the secrets of project ${preview?.of}: its code, and everyone who may deploy to it, can read them.`,
    );
}

/** Those of the apps that are a preview of that name. Someone may have put another one into its network. */
export function ofPreview(apps: readonly App[], name: string): App[] {
  return apps.filter(({ preview }) => preview?.name === name);
}

/** Returns the apps that go together with a preview: those of its name in its network, or itself. */
export async function togetherWith(client: HibernautClient, app: App): Promise<App[]> {
  const { network, preview } = app;
  if (network === undefined || preview === undefined) return [app];
  return ofPreview(await appsOf(client, network.name), preview.name);
}

/** Destroys previews, once it is agreed to lose what they have. Rejects with the first failure, when the others are gone. */
export async function destroyPreviews(context: Context, apps: readonly App[], yes: boolean): Promise<string[]> {
  const client = await context.client();
  await agreeToLose(await Promise.all(apps.map(({ name }) => lossOf(client, name))), yes);
  const ended = await Promise.allSettled(
    apps.map(async ({ name, preview }) => {
      if (preview !== undefined) await client.destroyPreview(preview.of, preview.name);
      return name;
    }),
  );
  const failed = ended.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason as Error;
  return apps.map(({ name }) => name);
}
