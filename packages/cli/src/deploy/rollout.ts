/** Carries out a deploy plan, stage by stage. */
import type { Machine, MachineState } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { hasCrashed, lastWords } from "../crashed.ts";
import { toFailure } from "../failure.ts";
import { waitFor } from "../waiting.ts";
import { stoppedError, untilHealthy } from "./healthy.ts";
import { isUp, type Step } from "./plan.ts";
import { type Booted, carryOutAction, type RolloutOptions, type StepResult, undoBoots } from "./replacing.ts";
import type { Stage } from "./strategy.ts";

/** States from which a machine that already has the new version comes up without further commands. */
const IN_TRANSIT: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating"]);

/** Carries out the stages. Rejects with the first failure of a stage, once the rest of that stage is over. */
export async function rollOut(
  context: Context,
  stages: readonly Stage[],
  options: RolloutOptions,
): Promise<StepResult[]> {
  const booted: Booted = new Map();
  const done: StepResult[] = [];
  for (const [index, { actions, undo }] of stages.entries()) {
    const later = stages.slice(index + 1).flatMap((stage) => stage.actions);
    const left = later.filter((action) => action.do === "step" && action.step.kind === "update").length;
    const ended = await Promise.allSettled(
      actions.map(async (action) => {
        if (action.do !== "step") return carryOutAction(context, action, booted, options);
        if (action.wait) return carryOutAndWait(context, action.step, left, options);
        return carryOut(context, action.step, options);
      }),
    );
    const failed = ended.find((end) => end.status === "rejected");
    if (failed !== undefined && undo) await undoBoots(context, booted, options);
    if (failed !== undefined) throw failed.reason as Error;
    for (const end of ended) if (end.status === "fulfilled" && end.value !== undefined) done.push(end.value);
  }
  return done;
}

async function carryOutAndWait(
  context: Context,
  step: Step,
  left: number,
  options: RolloutOptions,
): Promise<StepResult> {
  const tries = step.kind === "keep" && step.tries;
  if (step.kind !== "keep" || tries) options.onStep(describe(step));
  const done = await carryOutWhenFree(context, step, options);
  // An earlier deploy may have left it half way up if it was cut off, and unreachable if it failed.
  if (step.kind === "keep" && !tries && !IN_TRANSIT.has(step.machine.state) && step.machine.unreachable === null)
    return done;
  const { machine_id: id } = done;
  if (tries || (step.kind === "update" && step.running && !isUp(step.machine))) await start(context, id, options);
  if (done.action === "restored" && step.kind === "update" && !step.running) {
    options.onStep(`Machine ${id} is ${done.state}, with the state that the template of the new version has.`);
    return done;
  }
  if (step.kind === "update" && !step.running) {
    if (options.prewarm !== undefined && options.prewarm !== false)
      await untilPrewarmed(context, step.machine, left, options);
    else
      options.onStep(
        `Machine ${id} is ${await waitFor(context, id, ["settled"], options)}. The new version is not tested yet: it starts with the next request${await orAtOnce(context)}. With --prewarm, a deploy starts it, checks it, and lets it sleep again.`,
      );
    return { ...done, state: (await (await context.client()).getMachine(context.app, id)).state };
  }
  const verdict = await untilHealthy(context, id, options.waitTimeout);
  if (verdict.ok && step.kind !== "keep") await options.templates?.keep(step.group, id);
  const old = step.kind === "update" && step.machine.config.image !== step.config.image ? step.machine : undefined;
  if (!verdict.ok) throw stoppedError(context, id, verdict, left, old?.config.image);
  options.onStep(`Machine ${id} is running the new version: ${verdict.text}.`);
  return { ...done, state: "running" };
}

/** A worker that sleeps is woken when the machine at the other end loses its connection, and connects again. */
async function orAtOnce(context: Context): Promise<string> {
  const { network } = await (await context.client()).getApp(context.app);
  return network === undefined ? "" : ", or at once if a worker that sleeps had a connection to it";
}

/** Starts a machine that sleeps, once it has the new version. */
async function start(context: Context, id: string, options: RolloutOptions): Promise<void> {
  await waitFor(context, id, ["settled"], options);
  await (await context.client()).startMachine(context.app, id);
}

/** Waits until the platform has tried the new version, which has to pass, and has let the machine sleep again. */
async function untilPrewarmed(context: Context, old: Machine, left: number, options: RolloutOptions): Promise<void> {
  const client = await context.client();
  const { id } = old;
  await waitFor(context, id, ["prewarmed"], options);
  const { prewarm } = await client.getMachine(context.app, id);
  const reason = prewarm?.reason ?? null;
  if (prewarm?.status === "failed")
    throw stoppedError(context, id, await whyFailed(context, id, reason), left, old.config.image);
  if (prewarm?.status === "done") {
    const state = await waitFor(context, id, ["settled"], options);
    const why = reason === null ? "" : `: ${reason}`;
    return options.onStep(`Machine ${id} ran the new version, and is ${state} again${why}.`);
  }
  const verdict = await untilHealthy(context, id, options.waitTimeout);
  if (!verdict.ok) throw stoppedError(context, id, verdict, left, old.config.image);
  options.onStep(`Machine ${id} is running the new version, because ${reason ?? "it was started"}: ${verdict.text}.`);
}

/** Why a prewarm failed, with the last words of an app that crashed. */
async function whyFailed(context: Context, id: string, reason: string | null) {
  const text = reason ?? "it did not work";
  const machine = await (await context.client()).getMachine(context.app, id);
  return { text, ...(hasCrashed(machine) && { lastWords: await lastWords(context, id) }) };
}

/** Carries out the step; waits first if the machine is being suspended or updated, for example by an earlier deploy. */
async function carryOutWhenFree(context: Context, step: Step, options: RolloutOptions): Promise<StepResult> {
  for (const end = Date.now() + options.waitTimeout * 1000; ; ) {
    try {
      return await carryOut(context, step, options);
    } catch (error) {
      if (step.kind !== "update" || toFailure(error).error !== "aborted" || Date.now() > end) throw error;
      await waitFor(context, step.machine.id, ["settled"], options);
    }
  }
}

async function carryOut(
  context: Context,
  step: Step,
  { place = {}, prewarm = false, templates }: RolloutOptions,
): Promise<StepResult> {
  if (step.kind === "keep") return doneTo(step.machine, "kept");
  const client = await context.client();
  const { group, config } = step;
  if (step.kind === "create") {
    // A machine from a template has no choice of a region.
    const born = place.region === undefined ? await templates?.create(group, config, place.host) : undefined;
    return doneTo(born ?? (await client.createMachine(context.app, { ...place, config })), "created");
  }
  const { id } = step.machine;
  const restored = await templates?.update(group, id, config, step.running);
  if (restored !== undefined) return doneTo(restored, "restored");
  return doneTo(await client.updateMachine(context.app, id, config, { prewarm }), "updated");
}

function doneTo({ id, state }: Machine, action: StepResult["action"]): StepResult {
  return { machine_id: id, action, state };
}

function describe(step: Step): string {
  if (step.kind === "keep")
    return `Starting machine ${step.machine.id}, which is ${step.machine.state}: no release of the app has worked yet`;
  if (step.kind === "create") return `Creating a machine in process group ${step.group}`;
  return step.running
    ? `Replacing machine ${step.machine.id}`
    : `Updating machine ${step.machine.id}, which is ${step.machine.state}`;
}
