/** Deciding what someone requests. */
import { HibernautError } from "../../domain/errors.ts";
import type { MachineRecord } from "../../domain/machine.ts";
import { restAfterUpdate } from "../restart.ts";
import { COMMAND_TABLE } from "./command-table.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Command, Details } from "./events.ts";
import { whenToMove } from "./move-bundle.ts";
import { refusedSuspend, sleepCommand } from "./sleep.ts";
import { refused, step, unchanged } from "./step.ts";

/** Decides a command. What the lifecycle does not allow is refused with a HibernautError. */
export function decideCommand(record: MachineRecord, command: Command, context: DecideContext): Decision {
  if (command.type === "move_bundle") return moveBundle(record, command.details, context);
  if (command.type === "sleep") return decideCommand(record, sleepCommand(record, command, context), context);
  const { goal, state, id } = record;
  const answer = COMMAND_TABLE[state][command.type]({
    goal,
    force: command.type === "destroy" && command.force === true,
  });
  if (answer.kind === "refuse") {
    const message = `Machine ${id} is ${state}: ${answer.reason}.`;
    return refused(record, new HibernautError(answer.code, message, { machine_id: id, state }));
  }
  const ineligible = command.type === "suspend" && answer.kind === "move" && refusedSuspend(record, context);
  if (ineligible) return refused(record, ineligible);
  const reason = command.type === "discard_snapshot" ? { reason: command.reason } : {};
  const details = { ...reason, ...command.details };
  return step(record, { type: command.type, answer, changes: changesBy(record, command, context), details }, context);
}

/** Moves a machine to the newest guest bundle: by an update, or at its next cold start, or not at all. */
function moveBundle(record: MachineRecord, details: Details = {}, context: DecideContext): Decision {
  const { config, imageDigest, state } = record;
  const update = decideCommand(record, { type: "update", config, imageDigest, details }, context);
  const when = whenToMove(record, context.limits.currentBundle);
  if (update.tell.refusal !== undefined || when === "now") return update;
  if (when === "never" || (record.bundleMove ?? null) !== null) return unchanged(record);
  const at = context.now.toISOString();
  const next = { ...record, bundleMove: { version: context.id }, updatedAt: at };
  const reason = "the machine keeps its snapshot, and gets the newest guest bundle at its next cold start";
  const history = { at, type: "update", from: state, to: state, details: { ...details, reason } };
  return { record: next, effect: null, tell: { history, followers: true } };
}

/** What a command changes apart from state and goal. */
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
