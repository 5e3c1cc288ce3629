/** Carries out a plan: machines one by one, or all at once. */
import type { Machine, MachineConfig, MachineState } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { toFailure } from "../failure.ts";
import { waitFor } from "../waiting.ts";
import { stopped, untilHealthy } from "./healthy.ts";
import type { Step } from "./plan.ts";

export interface RolloutOptions {
  strategy: "rolling" | "immediate";
  /** Seconds that a machine has to come up and pass its checks. */
  waitTimeout: number;
  /** Told what is being done. */
  onStep(text: string): void;
}

/** What was done to one machine. */
export interface Done {
  machine_id: string;
  action: "created" | "updated" | "kept";
  state: string;
}

/** States from which a machine that already has the new version comes up without further commands. */
const IN_TRANSIT: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating"]);

/** Rejects as soon as a machine does not pass; those after it were not touched. */
export async function rollOut(context: Context, steps: readonly Step[], options: RolloutOptions): Promise<Done[]> {
  if (options.strategy === "immediate") return Promise.all(steps.map((step) => carryOut(context, step)));
  const done: Done[] = [];
  for (const [index, step] of steps.entries()) {
    const left = steps.slice(index + 1).filter(({ kind }) => kind === "update").length;
    done.push(await carryOutAndWait(context, step, left, options));
  }
  return done;
}

async function carryOutAndWait(context: Context, step: Step, left: number, options: RolloutOptions): Promise<Done> {
  if (step.kind !== "keep") options.onStep(describe(step));
  const done = await carryOutWhenFree(context, step, options);
  // An earlier deploy, cut off since, may have left it half way up.
  if (step.kind === "keep" && !IN_TRANSIT.has(step.machine.state)) return done;
  const { machine_id: id } = done;
  if (step.kind === "update" && !step.running) {
    const state = await waitFor(context, id, ["settled"], options);
    options.onStep(`Machine ${id} is ${state} and starts with the new version.`);
    return { ...done, state: (await (await context.client()).getMachine(context.app, id)).state };
  }
  const verdict = await untilHealthy(context, id, options.waitTimeout);
  const old = step.kind === "update" && step.machine.config.image !== step.config.image ? step.machine : undefined;
  if (!verdict.ok) throw stopped(context, id, verdict, left, old?.config.image);
  options.onStep(`Machine ${id} runs the new version: ${verdict.text}.`);
  return { ...done, state: "running" };
}

/** A machine that is just being suspended or updated, by an earlier deploy perhaps, is waited for. */
async function carryOutWhenFree(context: Context, step: Step, options: RolloutOptions): Promise<Done> {
  for (const end = Date.now() + options.waitTimeout * 1000; ; ) {
    try {
      return await carryOut(context, step);
    } catch (error) {
      if (step.kind !== "update" || toFailure(error).error !== "aborted" || Date.now() > end) throw error;
      await waitFor(context, step.machine.id, ["settled"], options);
    }
  }
}

async function carryOut(context: Context, step: Step): Promise<Done> {
  const client = await context.client();
  if (step.kind === "keep") return doneTo(step.machine, "kept");
  if (step.kind === "create")
    return doneTo(await client.createMachine(context.app, { config: step.config }), "created");
  return doneTo(await client.updateMachine(context.app, step.machine.id, step.config), "updated");
}

function doneTo({ id, state }: Machine, action: Done["action"]): Done {
  return { machine_id: id, action, state };
}

function describe(step: Exclude<Step, { kind: "keep" }>): string {
  if (step.kind === "create") return `Creating a machine of process group ${step.group}`;
  return step.running
    ? `Replacing machine ${step.machine.id}`
    : `Updating machine ${step.machine.id}, which is ${step.machine.state}`;
}

/** The same configuration with another amount of memory. */
export function withMemory(config: MachineConfig, memoryMb: number): MachineConfig {
  return { ...config, guest: { ...config.guest, memory_mb: memoryMb } };
}
