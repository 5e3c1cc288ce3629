/** What a command does in each state. */
import type { MachineState } from "@hibernaut/domain/machine";
import { boot, halt, move, type Rule, refuse, stay } from "./answer.ts";
import type { CommandName } from "./events.ts";

const forced = (rule: Rule): Rule => {
  const refusal = refuse("failed_precondition", "stop it first, or destroy it with --force (over HTTP `?force=true`)");
  return (situation) => (situation.force === true ? rule : refusal)(situation);
};
const stopThenStart = move("stopping", "halt", "running");
const remove = move("destroying", "remove");
const update = move("updating", "apply_update");
const discard = stay(undefined, "discard_snapshots");
const notRunning = refuse("failed_precondition", "only a running machine can be suspended");
const busy = (what: string) => refuse("aborted", `it is being ${what}; wait until that is done and try again`);
/** A machine that destroys itself after this stop does nothing else any more. */
const unlessFinal = (rule: Rule): Rule => {
  const ends = busy("destroyed, because of its auto_destroy");
  return (situation) => (situation.goal === "destroyed" ? ends : rule)(situation);
};
const gone = refuse("not_found", "it was destroyed");

export const COMMAND_TABLE: Record<MachineState, Record<CommandName, Rule>> = {
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
    stop: halt,
    update,
    destroy: forced(remove),
    discard_snapshot: busy("started"),
  },
  running: {
    start: stay(),
    suspend: move("suspending", "capture"),
    stop: halt,
    restart: stopThenStart,
    update,
    destroy: forced(remove),
    discard_snapshot: stay(),
  },
  suspending: {
    start: stay("running", "cancel_capture"),
    // Once a start has cancelled the capture, it cannot be un-cancelled: say so rather than forget the suspend.
    suspend: (situation) => (situation.goal === "running" ? busy("woken by a start") : stay())(situation),
    stop: halt,
    restart: stopThenStart,
    update: busy("suspended"),
    destroy: forced(remove),
    discard_snapshot: busy("suspended"),
  },
  suspended: {
    start: boot,
    suspend: stay(),
    stop: halt,
    restart: stopThenStart,
    update,
    destroy: remove,
    discard_snapshot: discard,
  },
  stopping: {
    start: unlessFinal(stay("running")),
    restart: unlessFinal(stay("running")),
    suspend: notRunning,
    stop: ({ goal, final = false }) => stay(final || goal === "destroyed" ? "destroyed" : null)({ goal }),
    update: unlessFinal(update), // begins once the stop is done
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
    stop: halt,
    update,
    destroy: remove,
    discard_snapshot: discard, // a resume for which QEMU could not be started has left one
  },
  restarting: {
    start: boot,
    restart: boot,
    suspend: notRunning,
    stop: halt,
    update,
    destroy: remove,
    discard_snapshot: stay(),
  },
  updating: {
    start: stay("running"),
    // The update ends the guest by its own rules: nothing would come of the terms.
    restart: (situation) => (situation.onTerms === true ? busy("updated") : stay("running"))(situation),
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
