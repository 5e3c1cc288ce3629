/**
 * The lifecycle of a machine: one pure table, state x event -> what happens. Nothing else in the
 * platform decides about states.
 */
import type { ErrorCode } from "../domain/errors.ts";
import { type Goal, type MachineState, type RestingState, STATES } from "../domain/machine.ts";

/** What someone asks for. */
export const COMMANDS = ["start", "suspend", "stop", "restart", "update", "destroy"] as const;
/** What the work that was begun, or the guest itself, reports. */
export const OUTCOMES = [
  "started",
  "start_failed",
  "captured",
  "capture_cancelled",
  "capture_failed",
  "halted",
  "halt_failed",
  "updated",
  "update_failed",
  "removed",
  "remove_failed",
  /** The app ended and its restart policy lets it rest, or runs it again. */
  "app_ended",
  "app_restarts",
  /** The virtual machine vanished; likewise. */
  "lost",
  "lost_restarts",
  /** The wait before the next start by the restart policy is over. */
  "retry",
] as const;

export type Command = (typeof COMMANDS)[number];
export type Outcome = (typeof OUTCOMES)[number];
export type LifecycleEvent = Command | Outcome;

/** Work that follows a transition; each kind is one function of the controller. */
export type Effect = "boot" | "back_off" | "capture" | "cancel_capture" | "halt" | "apply_update" | "remove";

export type Transition =
  | { kind: "move"; to: MachineState; goal: Goal; effect?: Effect }
  /** Accepted, but the state does not change: it is there already, or on its way. */
  | { kind: "stay"; goal: Goal; effect?: Effect }
  | { kind: "refuse"; code: ErrorCode; reason: string };

/** What the table's answer may depend on besides state and event. */
export interface LifecycleContext {
  goal: Goal;
  /** Where an update started. */
  from?: RestingState | undefined;
  force?: boolean | undefined;
}

type Rule = (context: LifecycleContext) => Transition;
type Row = Partial<Record<LifecycleEvent, Rule>>;

const move = (to: MachineState, effect?: Effect, goal: Goal = null): Rule => {
  return () => ({ kind: "move", to, goal, ...(effect && { effect }) });
};
const stay = (goal?: Goal, effect?: Effect): Rule => {
  return (context) => ({ kind: "stay", goal: goal === undefined ? context.goal : goal, ...(effect && { effect }) });
};
const refuse = (code: ErrorCode, reason: string): Rule => {
  return () => ({ kind: "refuse", code, reason });
};
/** Work that ended in `rest`, unless a start was asked for meanwhile. */
const restOrStart = (rest: MachineState): Rule => {
  return ({ goal }) =>
    goal === "running"
      ? { kind: "move", to: "starting", goal: null, effect: "boot" }
      : { kind: "move", to: rest, goal: null };
};
const forced = (rule: Rule): Rule => {
  const refusal = refuse("failed_precondition", "stop it first, or destroy it with --force (over HTTP `?force=true`)");
  return (context) => (context.force === true ? rule(context) : refusal(context));
};

const boot = move("starting", "boot");
const remove = move("destroying", "remove");
const update = move("updating", "apply_update");
const backOff = move("restarting", "back_off");
/** The app ended and will be started again, once what is left of its guest is gone. */
const restart = move("stopping", "halt", "restarting");
const notRunning = refuse("failed_precondition", "only a running machine can be suspended");
const busy = (what: string) => refuse("aborted", `it is being ${what}; wait until that is done and try again`);

const TABLE: Record<MachineState, Row> = {
  created: {
    start: boot,
    restart: boot,
    stop: refuse("failed_precondition", "it has never run"),
    suspend: notRunning,
    update,
    destroy: remove,
  },
  starting: {
    start: stay(),
    restart: stay(),
    suspend: refuse("failed_precondition", "it is still starting; wait for running"),
    stop: move("stopping", "halt"),
    update,
    destroy: forced(remove),
    started: move("running"),
    start_failed: move("failed"),
    app_ended: move("stopping", "halt"),
    app_restarts: restart,
  },
  running: {
    start: stay(),
    suspend: move("suspending", "capture"),
    stop: move("stopping", "halt"),
    restart: move("stopping", "halt", "running"),
    update,
    destroy: forced(remove),
    app_ended: move("stopping", "halt"),
    app_restarts: restart,
    lost: move("failed"),
    lost_restarts: backOff,
  },
  suspending: {
    start: stay("running", "cancel_capture"),
    // Once a start has cancelled the capture, it cannot be un-cancelled: say so rather than forget the suspend.
    suspend: (context) => (context.goal === "running" ? busy("woken by a start")(context) : stay()(context)),
    stop: move("stopping", "halt"),
    restart: move("stopping", "halt", "running"),
    update: busy("suspended"),
    destroy: forced(remove),
    captured: restOrStart("suspended"),
    capture_cancelled: move("running"),
    capture_failed: move("running"),
    lost: move("failed"),
    lost_restarts: backOff,
  },
  suspended: {
    start: boot,
    suspend: stay(),
    stop: move("stopping", "halt"),
    restart: move("stopping", "halt", "running"),
    update,
    destroy: remove,
  },
  stopping: {
    start: stay("running"),
    restart: stay("running"),
    suspend: notRunning,
    stop: stay(null),
    update, // begins once the stop is done
    destroy: remove,
    halted: (context) => (context.goal === "restarting" ? backOff : restOrStart("stopped"))(context),
    halt_failed: move("failed"),
  },
  stopped: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop: stay(),
    update,
    destroy: remove,
  },
  failed: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop: move("stopping", "halt"),
    update,
    destroy: remove,
  },
  restarting: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop: move("stopping", "halt"),
    update,
    destroy: remove,
    retry: boot,
  },
  updating: {
    start: stay("running"),
    restart: stay("running"),
    suspend: busy("updated"),
    stop: busy("updated"),
    update: busy("updated"),
    destroy: forced(remove),
    updated: (context) =>
      restOrStart(context.from ?? "stopped")(context.from === "running" ? { goal: "running" } : context),
    update_failed: move("failed"),
  },
  destroying: {
    start: busy("destroyed"),
    restart: busy("destroyed"),
    suspend: busy("destroyed"),
    stop: busy("destroyed"),
    update: busy("destroyed"),
    destroy: stay(),
    removed: move("destroyed"),
    remove_failed: move("failed"),
  },
  destroyed: {
    start: refuse("not_found", "it was destroyed"),
    restart: refuse("not_found", "it was destroyed"),
    suspend: refuse("not_found", "it was destroyed"),
    stop: refuse("not_found", "it was destroyed"),
    update: refuse("not_found", "it was destroyed"),
    destroy: stay(),
  },
};

/** What `event` does to a machine in `state`. An outcome that the state does not expect is refused as `aborted`. */
export function transition(state: MachineState, event: LifecycleEvent, context: LifecycleContext): Transition {
  const rule = TABLE[state][event] ?? refuse("aborted", `nothing in state ${state} reports ${event}`);
  return rule(context);
}

/** Every pair of states between which a machine may move, as `from>to`. For tests and documents. */
export function listedMoves(): Set<string> {
  const moves = new Set<string>();
  const froms: (RestingState | undefined)[] = [undefined, "created", "running", "suspended", "stopped", "failed"];
  for (const state of STATES) {
    for (const rule of Object.values(TABLE[state])) {
      for (const goal of [null, "running", "restarting"] as const) {
        for (const from of froms) {
          const answer = rule({ goal, from, force: true });
          if (answer.kind === "move") moves.add(`${state}>${answer.to}`);
        }
      }
    }
  }
  return moves;
}
