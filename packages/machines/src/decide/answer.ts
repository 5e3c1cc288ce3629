/** What the tables of commands and outcomes answer, and the words they are written in. */
import type { ErrorCode } from "@hibernaut/domain/errors";
import type { Goal, MachineState, RestingState } from "@hibernaut/domain/machine";
import type { Effect } from "./effect.ts";

export type Answer =
  | { kind: "move"; to: MachineState; goal: Goal; effect: Effect["type"] | null }
  /** Accepted, but the state does not change: it is that already, or on its way. */
  | { kind: "stay"; goal: Goal; effect: Effect["type"] | null }
  | { kind: "refuse"; code: ErrorCode; reason: string };

/** What an answer may depend on in addition to state and event. */
interface Situation {
  goal: Goal;
  /** Where an update started. */
  from?: RestingState | undefined;
  force?: boolean | undefined;
  /** Whether the machine is started with its new version before anyone needs it. */
  prewarming?: boolean | undefined;
  /** Whether a start ended in a resume. */
  resumed?: boolean | undefined;
  /** Whether there is a snapshot. */
  asleep?: boolean | undefined;
  /** Whether the machine is destroyed after this: see `auto-destroy.ts`. */
  final?: boolean | undefined;
  /** Whether someone says how the app is asked to exit. */
  onTerms?: boolean | undefined;
}

export type Rule = (situation: Situation) => Answer;

export function move(to: MachineState, effect: Effect["type"] | null = null, goal: Goal = null): Rule {
  return () => ({ kind: "move", to, goal, effect });
}

/** Without a goal, the present one stays. */
export function stay(goal?: Goal, effect: Effect["type"] | null = null): Rule {
  return (situation) => ({ kind: "stay", goal: goal === undefined ? situation.goal : goal, effect });
}

export function refuse(code: ErrorCode, reason: string): Rule {
  return () => ({ kind: "refuse", code, reason });
}

/** Ends the guest; after that the machine is stopped, or destroyed if this is its end. */
export const halt: Rule = ({ final = false }) => move("stopping", "halt", final ? "destroyed" : null)({ goal: null });

/** Work that ended in `rest`, unless a start was requested meanwhile. */
export function restOrStart(rest: MachineState): Rule {
  return (situation) => (situation.goal === "running" ? boot : move(rest))(situation);
}

export const boot = move("starting", "boot");
export const backOff = move("restarting", "back_off");
