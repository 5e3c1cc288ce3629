/** Brings one service of a project to the platform, if it is not there already. */
import { createHash } from "node:crypto";
import type { Machine } from "@hibernaut/client";
import { type ServicePlan, withExposed } from "@hibernaut/compose";
import { GROUP_METADATA } from "../appfile/machine-configs.ts";
import type { Context } from "../context.ts";
import { hasCrashed } from "../crashed.ts";
import { untilHealthy } from "../deploy/healthy.ts";
import { groupOf } from "../deploy/plan.ts";
import { CliError } from "../failure.ts";
import { given } from "../option-values.ts";
import { provide } from "../upload/provide.ts";
import { firstReached } from "../waiting.ts";
import type { Builds } from "./builds.ts";

/** The metadata key of what a machine was made from: a service that is the same is left as it is. */
export const DIGEST_METADATA = "hibernaut_compose";
/** The only process group of a service. */
export const GROUP = "app";

export interface ServiceOptions {
  waitTimeout: number;
  upload?: boolean;
  /** Whether to deploy also what is as it should be. */
  force: boolean;
  builds: Builds;
}

/** What was done: `kept` is nothing. */
export type Action = "kept" | "deployed" | "ran" | "started" | "restarted";

/** Deploys the service, unless its machine was made from the same. */
export async function deployService(
  context: Context,
  plan: ServicePlan,
  { waitTimeout, upload, force, builds }: ServiceOptions,
): Promise<Action> {
  const client = await context.client();
  const image = plan.image ?? (plan.build && (await builds.image(context, plan.build)));
  if (image === undefined) throw new Error("neither an image nor a build");
  const digest = digestOf(plan, image);
  const stale = await setSecrets(context, plan);
  const all = await client.listMachines(plan.app);
  const machines = all.filter((machine) => groupOf(machine) === GROUP);
  if (!force && machines.length > 0 && machines.every((machine) => isCurrent(machine, digest))) {
    return bringUp(context, plan, { machines, stale, waitTimeout });
  }
  const { config: complete } = await withPortsOfImage(context, plan, image, upload);
  const config = { ...complete, image, metadata: { [GROUP_METADATA]: GROUP, [DIGEST_METADATA]: digest } };
  const { carryOut } = await import("../deploy/deploy.ts");
  const { machines: done } = await carryOut(
    context,
    {
      ...{ app: plan.app, image, built: undefined, statusPage: undefined, release: undefined },
      groups: new Map([[GROUP, { config }]]),
      deploy: {
        ...{ strategy: undefined, maxUnavailable: undefined, waitTimeout: undefined, prewarm: undefined },
        ...{ template: undefined, releaseCommand: undefined },
      },
    },
    { waitTimeout, ...(upload !== undefined && { upload }) },
  );
  if (!plan.runsOnce) return "deployed";
  for (const { machine_id: id } of done) await untilDone(context, id, waitTimeout);
  return "ran";
}

/** Nothing about the service has changed, but its machines may not be where they should be. */
async function bringUp(
  context: Context,
  { app, runsOnce }: ServicePlan,
  { machines, stale, waitTimeout }: { machines: readonly Machine[]; stale: readonly string[]; waitTimeout: number },
): Promise<Action> {
  const client = await context.client();
  if (runsOnce) {
    // An earlier command may have given it up before it had done its work.
    for (const { id } of machines) await untilDone(context, id, waitTimeout);
    return "kept";
  }
  // Nothing would wake one that listens nowhere.
  const ended = machines.filter(
    ({ id, state, config }) => state === "stopped" && !config.services && !stale.includes(id),
  );
  for (const id of stale) await client.restartMachine(app, id);
  for (const { id } of ended) await client.startMachine(app, id);
  for (const id of [...stale, ...ended.map((machine) => machine.id)]) {
    const verdict = await untilHealthy(context, id, waitTimeout);
    if (!verdict.ok) throw new CliError("failed_precondition", `Machine ${id} of ${app}: ${verdict.text}`);
  }
  return stale.length > 0 ? "restarted" : ended.length > 0 ? "started" : "kept";
}

/** An image says where it listens once the platform has it. */
async function withPortsOfImage(
  context: Context,
  plan: ServicePlan,
  image: string,
  upload: boolean | undefined,
): Promise<ServicePlan> {
  if (plan.config.services !== undefined || plan.runsOnce || plan.worker !== false) return plan;
  const { exposed_ports: exposed = [] } = await provide(context, image, given({ upload }));
  return withExposed(plan, exposed);
}

/** Without what secrets hold: those who read a machine's metadata could try what it might be. */
function digestOf({ config }: ServicePlan, image: string): string {
  return createHash("sha256")
    .update(JSON.stringify([config, image]))
    .digest("hex")
    .slice(0, 32);
}

function isCurrent(machine: Machine, digest: string): boolean {
  return machine.config.metadata?.[DIGEST_METADATA] === digest && machine.state !== "failed" && !hasCrashed(machine);
}

/** Sets those that differ. Returns the machines that run with others. */
async function setSecrets(context: Context, { app, service, secrets }: ServicePlan): Promise<string[]> {
  if (secrets.length === 0) return [];
  const client = await context.client();
  const known = new Set((await client.listSecrets(app)).map(({ name }) => name));
  const missing = secrets.find(({ name, value }) => value === undefined && !known.has(name));
  if (missing !== undefined)
    throw new CliError(
      "failed_precondition",
      `The service ${service} needs an external secret. Set it: hibernaut secrets set ${missing.name}="$(base64 < file)" --app ${app}`,
    );
  const values = secrets.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const]));
  return values.length === 0 ? [] : (await client.setSecrets(app, Object.fromEntries(values))).pending;
}

/** A job that others wait for has done its work once it has ended, and ended well. */
async function untilDone(context: Context, id: string, waitTimeout: number): Promise<void> {
  await firstReached(context, id, ["stopped", "failed", "destroyed"], { waitTimeout });
  const machine = await (await context.client()).getMachine(context.app, id);
  if (machine.state === "stopped" && machine.crash === null) return;
  const why = machine.crash?.reason ?? machine.state;
  throw new CliError(
    "failed_precondition",
    `${context.app} did not do its work: ${why}. See \`hibernaut logs --app ${context.app}\`.`,
  );
}
