/** Which actions a machine allows now, and why not the others. Pure; the platform decides in the end. */
import type { Machine, MachineState, Scope, Session } from "@hibernaut/client/browser";
import { lackOf } from "../../data/rights.ts";

/** What someone can do with a machine. */
export type ActionName =
  | "start"
  | "suspend"
  | "stop"
  | "restart"
  | "cordon"
  | "fork"
  | "template"
  | "update"
  | "destroy";

type Looked = Pick<Machine, "state" | "suspend" | "config">;

type States = Partial<Record<MachineState, string>>;

const GOING: States = { destroying: "It is being destroyed.", destroyed: "It was destroyed." };

/** By state, why an action would be refused or would change nothing. */
const REFUSALS: Readonly<Record<Exclude<ActionName, "suspend" | "fork" | "template">, States>> = {
  start: { running: "It is running.", starting: "It is starting already." },
  stop: {
    created: "It has never run.",
    stopped: "It is stopped.",
    stopping: "It is being stopped already.",
    updating: "It is being updated; wait until that is done.",
  },
  restart: { starting: "It is starting already." },
  cordon: {},
  update: {
    suspending: "It is being suspended; wait until that is done.",
    updating: "It is being updated already.",
  },
  destroy: {},
};

const SUSPEND: States = {
  suspended: "It is asleep.",
  suspending: "It is being suspended already.",
  starting: "It is still starting; wait until it is running.",
};

const COPY: States = {
  starting: "It is still starting; wait until it is running.",
  suspending: "It is being suspended; wait until that is done.",
};

/** Returns why an action is not possible; undefined if it is. */
export function refusalOf(action: ActionName, machine: Looked, session: Pick<Session, "scopes">): string | undefined {
  return lackOf(session, ...scopesFor(action)) ?? GOING[machine.state] ?? stateRefusal(action, machine);
}

function scopesFor(action: ActionName): Scope[] {
  return action === "start" ? ["exec", "deploy"] : ["deploy"];
}

function stateRefusal(action: ActionName, machine: Looked): string | undefined {
  const { state, suspend } = machine;
  const cannot = suspend.eligible ? undefined : `It cannot be suspended: ${suspend.reasons.join("; ")}.`;
  if (action === "fork" || action === "template") return copyRefusal(machine) ?? cannot;
  if (action !== "suspend") return REFUSALS[action][state];
  if (state !== "running") return SUSPEND[state] ?? "Only a running machine can be suspended.";
  return cannot;
}

/** Why the machine's memory and disk cannot be copied, for a fork or a template. */
function copyRefusal({ state, config }: Looked): string | undefined {
  if ((config.mounts ?? []).length > 0) return "It has volumes, and a volume belongs to one machine.";
  if (state === "running" || state === "suspended") return undefined;
  return COPY[state] ?? "Only a running or suspended machine has a memory that can be copied.";
}

/** Whether destroying the machine ends something that runs, which the platform only does when it is told to. */
export function needsForce({ state }: Pick<Machine, "state">): boolean {
  return !["created", "suspended", "stopping", "stopped", "failed", "restarting"].includes(state);
}
