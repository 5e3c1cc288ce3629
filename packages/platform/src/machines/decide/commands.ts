/** What a command does in each state. */
import { HibernautError } from "../../domain/errors.ts";
import type { MachineRecord, MachineState } from "../../domain/machine.ts";
import { suspendEligibility } from "../eligibility.ts";
import { restAfterUpdate } from "../restart.ts";
import { boot, move, refuse, type Rule, stay } from "./answer.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Command, CommandName } from "./events.ts";
import { refused, step } from "./step.ts";

const forced = (rule: Rule): Rule => {
  const refusal = refuse("failed_precondition", "stop it first, or destroy it with --force (over HTTP `?force=true`)");
  return (situation) => (situation.force === true ? rule : refusal)(situation);
};
const stop = move("stopping", "halt");
const stopThenStart = move("stopping", "halt", "running");
const remove = move("destroying", "remove");
const update = move("updating", "apply_update");
const discard = stay(undefined, "discard_snapshots");
const notRunning = refuse("failed_precondition", "only a running machine can be suspended");
const busy = (what: string) => refuse("aborted", `it is being ${what}; wait until that is done and try again`);
const gone = refuse("not_found", "it was destroyed");

const TABLE: Record<MachineState, Record<CommandName, Rule>> = {
  created: {
    start: boot,
    restart: boot,
    stop: refuse("failed_precondition", "it has never run"),
    suspend: notRunning,
    update,
    destroy: remove,
    discard_snapshot: stay(),
  },
  starting: {
    start: stay(),
    restart: stay(),
    suspend: refuse("failed_precondition", "it is still starting; wait for running"),
    stop,
    update,
    destroy: forced(remove),
    discard_snapshot: busy("started"),
  },
  running: {
    start: stay(),
    suspend: move("suspending", "capture"),
    stop,
    restart: stopThenStart,
    update,
    destroy: forced(remove),
    discard_snapshot: stay(),
  },
  suspending: {
    start: stay("running", "cancel_capture"),
    // Once a start has cancelled the capture, it cannot be un-cancelled: say so rather than forget the suspend.
    suspend: (situation) => (situation.goal === "running" ? busy("woken by a start") : stay())(situation),
    stop,
    restart: stopThenStart,
    update: busy("suspended"),
    destroy: forced(remove),
    discard_snapshot: busy("suspended"),
  },
  suspended: {
    start: boot,
    suspend: stay(),
    stop,
    restart: stopThenStart,
    update,
    destroy: remove,
    discard_snapshot: discard,
  },
  stopping: {
    start: stay("running"),
    restart: stay("running"),
    suspend: notRunning,
    stop: stay(null),
    update, // begins once the stop is done
    destroy: remove,
    discard_snapshot: stay(),
  },
  stopped: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop: stay(),
    update,
    destroy: remove,
    discard_snapshot: stay(),
  },
  failed: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop,
    update,
    destroy: remove,
    discard_snapshot: discard, // a resume for which QEMU could not be started has left one
  },
  restarting: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop,
    update,
    destroy: remove,
    discard_snapshot: stay(),
  },
  updating: {
    start: stay("running"),
    restart: stay("running"),
    suspend: busy("updated"),
    stop: busy("updated"),
    update: busy("updated"),
    destroy: forced(remove),
    discard_snapshot: stay(),
  },
  destroying: {
    start: busy("destroyed"),
    restart: busy("destroyed"),
    suspend: busy("destroyed"),
    stop: busy("destroyed"),
    update: busy("destroyed"),
    destroy: stay(),
    discard_snapshot: stay(),
  },
  destroyed: {
    start: gone,
    restart: gone,
    suspend: gone,
    stop: gone,
    update: gone,
    destroy: stay(),
    discard_snapshot: gone,
  },
};

/** Decides a command. What the lifecycle does not allow is refused with a HibernautError. */
export function decideCommand(record: MachineRecord, command: Command, context: DecideContext): Decision {
  if (command.type === "sleep") return decideCommand(record, asleep(record, command, context), context);
  const { goal, state, id } = record;
  const answer = TABLE[state][command.type]({ goal, force: command.type === "destroy" && command.force === true });
  if (answer.kind === "refuse") {
    const message = `Machine ${id} is ${state}: ${answer.reason}.`;
    return refused(record, new HibernautError(answer.code, message, { machine_id: id, state }));
  }
  if (command.type === "suspend" && answer.kind === "move") {
    const { eligible, reasons } = suspendEligibility(record, context.limits);
    const message = `Machine ${id} cannot be suspended: ${reasons.join("; ")}.`;
    if (!eligible)
      return refused(record, new HibernautError("failed_precondition", message, { machine_id: id, reasons }));
  }
  const { details = {} } = command;
  return step(record, { type: command.type, answer, changes: changesBy(record, command, context), details }, context);
}

/** What an idle machine does: a suspend, or a stop with the reason why it cannot be suspended. */
function asleep(
  record: MachineRecord,
  { how, details = {} }: Extract<Command, { type: "sleep" }>,
  { limits }: DecideContext,
): Command {
  if (how === "stop") return { type: "stop", details };
  const { eligible, reasons } = suspendEligibility(record, limits);
  if (eligible) return { type: "suspend", details };
  return { type: "stop", details: { ...details, reason: `it cannot be suspended: ${reasons.join("; ")}` } };
}

/** What a command changes besides state and goal. */
function changesBy(record: MachineRecord, command: Command, { id, limits }: DecideContext): Partial<MachineRecord> {
  if (command.type === "suspend") return {};
  if (command.type === "discard_snapshot")
    return record.snapshot === null ? {} : { snapshot: null, coldReason: command.reason };
  const crash = (record.crash ?? null) === null ? {} : { crash: null };
  // Someone looks after the machine: earlier failures no longer count.
  const restarts = command.type === "start" && command.unattended === true ? {} : { restarts: 0 };
  if (command.type !== "update") return { ...crash, ...restarts };
  const { config, imageDigest } = command;
  const pending = {
    config,
    version: id,
    imageDigest,
    bundleVersion: limits.currentBundle,
    from: restAfterUpdate(record),
  };
  return { ...crash, ...restarts, pending };
}
