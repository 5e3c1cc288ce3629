/** Carries out the actions of canary and bluegreen deploys: machines that come in addition, and those that go. */
import type { CreateMachineRequest, Machine } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { lastWords } from "../crashed.ts";
import { CliError, toFailure } from "../failure.ts";
import { waitFor } from "../waiting.ts";
import { untilHealthy } from "./healthy.ts";
import { CANARY_METADATA } from "./leftovers.ts";
import type { ReleaseTemplates } from "./release-templates.ts";
import type { Action } from "./strategy.ts";

/** The machines that were booted, by their keys. */
export type Booted = Map<string, Machine>;

/** Where machines are created: a host and a region of the cluster. */
export type Place = Pick<CreateMachineRequest, "host" | "region">;

/** How a deploy is carried out. */
export interface RolloutOptions {
  /** Where machines are created. By default, a host is chosen for each. */
  place?: Place;
  /** How long a machine may take to come up and pass its checks, in seconds. */
  waitTimeout: number;
  /** Whether sleeping machines are started with the new version, must pass, and sleep again with a snapshot. */
  prewarm?: boolean | "prepared";
  /** The templates of the release, if it has any. */
  templates?: ReleaseTemplates | undefined;
  /** Called with a sentence about each step. */
  onStep(text: string): void;
}

/** What became of a machine, for the result of the deploy. */
export interface StepResult {
  machine_id: string;
  action: "created" | "updated" | "restored" | "kept" | "replaced" | "destroyed";
  state: string;
}

/** Carries out an action other than a step. Resolves with nothing when the result is up to a later action. */
export async function carryOutAction(
  context: Context,
  action: Exclude<Action, { do: "step" }>,
  booted: Booted,
  options: RolloutOptions,
): Promise<StepResult | undefined> {
  const client = await context.client();
  switch (action.do) {
    case "boot":
      return boot(context, action, booted, options);
    case "promote": {
      const { id } = machineOf(booted, action.key);
      await client.uncordonMachine(context.app, id);
      options.onStep(`Machine ${id} gets requests from now on.`);
      return { machine_id: id, action: "replaced", state: "running" };
    }
    case "discard":
      await destroy(context, machineOf(booted, action.key).id, options);
      booted.delete(action.key);
      return undefined;
    case "retire":
      return retire(context, action, options);
  }
}

/** Destroys all machines that were booted. Says which ones remain. */
export async function undoBoots(context: Context, booted: Booted, options: RolloutOptions): Promise<void> {
  for (const { id } of booted.values())
    await destroy(context, id, options).catch((error: unknown) =>
      options.onStep(
        `Machine ${id} could not be destroyed, and the next deploy tries again: ${toFailure(error).message}`,
      ),
    );
  booted.clear();
}

async function boot(
  context: Context,
  { key, group, config, model }: Extract<Action, { do: "boot" }>,
  booted: Booted,
  { place, waitTimeout, onStep }: RolloutOptions,
): Promise<undefined> {
  const client = await context.client();
  const isCanary = CANARY_METADATA in (config.metadata ?? {});
  const what = isCanary ? `a canary of process group ${group}` : `a machine to replace ${key}`;
  onStep(`Creating ${what}`);
  const machine = await client.createMachine(context.app, {
    ...placeBeside(model, place),
    config,
    skip_service_registration: true,
  });
  booted.set(key, machine);
  const verdict = await untilHealthy(context, machine.id, waitTimeout);
  if (verdict.ok) {
    onStep(`Machine ${machine.id} works: ${verdict.text}.`);
    return undefined;
  }
  const words = verdict.lastWords ?? (await lastWords(context, machine.id));
  throw new CliError(
    "failed_precondition",
    `${capital(what)} has the new version, and ${verdict.text.replace(/\.$/, "")}.${words}\nNo machine was changed, and the new ones are destroyed. Fix it and deploy again.`,
  );
}

/**
 * Where a machine goes that takes the place of another, or shows whether that one's new version works. A host that the user
 * named is for machines that come in addition, so this one stays where the other is.
 */
export function placeBeside({ host }: Pick<Machine, "host">, place: Place = {}): Place {
  return place.host === undefined || host === undefined ? place : { ...place, host };
}

async function retire(
  context: Context,
  { machine: { id }, why }: Extract<Action, { do: "retire" }>,
  options: RolloutOptions,
): Promise<StepResult | undefined> {
  const client = await context.client();
  options.onStep(
    why === "leftover" ? `Destroying machine ${id}, which an interrupted deploy has left` : `Destroying machine ${id}`,
  );
  try {
    await client.stopMachine(context.app, id).catch((error: unknown) => {
      // It has never run, or is gone already.
      if (!["failed_precondition", "not_found"].includes(toFailure(error).error)) throw error;
    });
    await waitFor(context, id, ["settled", "destroyed"], options);
    await destroy(context, id, options);
  } catch (error) {
    const { error: code, message } = toFailure(error);
    const advice = `Destroy it with \`hibernaut machine destroy ${id} --force --app ${context.app}\`, or deploy again.`;
    throw new CliError(
      code,
      `The new version runs, but the old machine ${id} could not be destroyed. ${message} ${advice}`,
    );
  }
  return why === "leftover" ? { machine_id: id, action: "destroyed", state: "destroyed" } : undefined;
}

async function destroy(context: Context, id: string, { waitTimeout }: RolloutOptions): Promise<void> {
  const client = await context.client();
  try {
    await client.destroyMachine(context.app, id, { force: true });
    await waitFor(context, id, ["destroyed"], { waitTimeout });
  } catch (error) {
    if (toFailure(error).error !== "not_found") throw error;
  }
}

function machineOf(booted: Booted, key: string): Machine {
  const machine = booted.get(key);
  if (machine === undefined) throw new Error(`no machine was booted for ${key}`);
  return machine;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
