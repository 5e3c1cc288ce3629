/** How a deploy changes the machines: in which order, what may fail, and what is undone then. Pure. */
import type { Machine, MachineConfig } from "@hibernaut/client";
import { GROUP_METADATA } from "../appfile/machine-configs.ts";
import { CANARY_METADATA, REPLACES_METADATA } from "./leftovers.ts";
import type { Step } from "./plan.ts";
import type { Strategy } from "./strategies.ts";

export type Action =
  /** Carries out the step. With `wait`, the machine has to pass. */
  | { do: "step"; step: Step; wait: boolean }
  /** Creates a cordoned machine, which gets no requests, and which has to pass. `key` names it in later actions; `model` has its place. */
  | { do: "boot"; key: string; group: string; config: MachineConfig; model: Machine }
  /** Gives requests to a machine that was booted. */
  | { do: "promote"; key: string }
  /** Destroys a machine that was booted. */
  | { do: "discard"; key: string }
  /** Stops a machine, which finishes its requests, and destroys it. */
  | { do: "retire"; machine: Machine; why: "replaced" | "leftover" };

/** Actions that are carried out at the same time. The next stage begins when all of them have succeeded. */
export interface Stage {
  actions: Action[];
  /** Whether, if one of them fails, all machines that were booted are destroyed: nothing has changed then. */
  undo: boolean;
}

interface StrategyOptions {
  strategy: Strategy;
  /** How many running machines of a group a rolling deploy replaces at a time: a number, or a part of them below 1. */
  maxUnavailable?: number | undefined;
}

/** Plans the steps by a strategy. */
export function planStages(steps: readonly Step[], { strategy, maxUnavailable = 1 }: StrategyOptions): Stage[] {
  switch (strategy) {
    case "immediate":
      return [{ actions: steps.map((step) => ({ do: "step", step, wait: false })), undo: false }];
    case "rolling":
      return rolling(steps, maxUnavailable);
    case "canary":
      return [...canaries(steps), ...rolling(steps, maxUnavailable)];
    case "bluegreen":
      return bluegreen(steps);
  }
}

/** Why the strategy cannot deploy these steps; undefined if it can. */
export function strategyRefusal(strategy: Strategy, steps: readonly Step[]): string | undefined {
  if (strategy !== "canary" && strategy !== "bluegreen") return undefined;
  const step = steps.find(hasVolumes);
  if (step === undefined) return undefined;
  const next = "Use --strategy rolling, or set it under [deploy] in the app file.";
  return `The strategy ${strategy} needs a second machine for each process group, and the machines of ${step.group} have volumes, which only one machine can use. ${next}`;
}

function hasVolumes(step: Step): boolean {
  const configs = [step.kind === "create" ? {} : step.machine.config, step.kind === "keep" ? {} : step.config];
  return configs.some(({ mounts = [] }: Partial<MachineConfig>) => mounts.length > 0);
}

/** Running machines of a group in batches, everything else one by one. */
function rolling(steps: readonly Step[], maxUnavailable: number): Stage[] {
  const groups = new Map<string, number>();
  for (const step of steps.filter(isReplacement)) groups.set(step.group, (groups.get(step.group) ?? 0) + 1);
  const stages: Stage[] = [];
  let batch: Action[] = [];
  let batchGroup: string | undefined;
  for (const step of steps) {
    const action: Action = { do: "step", step, wait: true };
    const most = isReplacement(step) ? batchSize(groups.get(step.group) ?? 1, maxUnavailable) : 1;
    const fits = isReplacement(step) && batchGroup === step.group && batch.length < most;
    if (!fits) stages.push({ actions: (batch = []), undo: false });
    batch.push(action);
    batchGroup = isReplacement(step) ? step.group : undefined;
  }
  return stages;
}

/** As on Fly: a part of the machines is rounded up. */
function batchSize(machines: number, maxUnavailable: number): number {
  const size = maxUnavailable >= 1 ? Math.floor(maxUnavailable) : Math.ceil(machines * maxUnavailable);
  return Math.max(1, size);
}

function isReplacement(step: Step): step is Extract<Step, { kind: "update" }> {
  return step.kind === "update" && step.running;
}

/** One new machine of each group that changes. It shows whether the new version works, and then goes. */
function canaries(steps: readonly Step[]): Stage[] {
  const first = new Map<string, Extract<Step, { kind: "update" }>>();
  for (const step of steps) if (step.kind === "update" && !first.has(step.group)) first.set(step.group, step);
  if (first.size === 0) return [];
  const boots = [...first].map(([group, { config, machine }]): Action => {
    const { [GROUP_METADATA]: _group, ...metadata } = config.metadata ?? {};
    return {
      do: "boot",
      key: group,
      group,
      model: machine,
      config: { ...config, metadata: { ...metadata, [CANARY_METADATA]: group } },
    };
  });
  const discards = [...first.keys()].map((key): Action => ({ do: "discard", key }));
  return [
    { actions: boots, undo: true },
    { actions: discards, undo: true },
  ];
}

/**
 * A new machine for each one that runs. Once all of them pass they get the requests, and the old ones go. Machines that
 * sleep are updated in place, as always.
 */
function bluegreen(steps: readonly Step[]): Stage[] {
  const blue = steps.filter(isReplacement);
  const boots = blue.map(({ machine, group, config }): Action => {
    const metadata = { ...config.metadata, [REPLACES_METADATA]: machine.id };
    return { do: "boot", key: machine.id, group, model: machine, config: { ...config, metadata } };
  });
  const rest = steps.filter((step) => !isReplacement(step));
  const stages: Stage[] = [
    { actions: boots, undo: true },
    { actions: blue.map(({ machine }) => ({ do: "promote", key: machine.id })), undo: false },
    { actions: blue.map(({ machine }) => ({ do: "retire", machine, why: "replaced" })), undo: false },
  ];
  return [...stages.filter(({ actions }) => actions.length > 0), ...rolling(rest, 1)];
}
