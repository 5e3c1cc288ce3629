/** Deciding what someone requests. */
import { HibernautError } from "../../domain/errors.ts";
import type { MachineRecord } from "../../domain/machine.ts";
import { restAfterUpdate } from "../restart.ts";
import { COMMAND_TABLE } from "./command-table.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Command } from "./events.ts";
import { refusedSuspend, sleepCommand } from "./sleep.ts";
import { refused, step } from "./step.ts";

/** Decides a command. What the lifecycle does not allow is refused with a HibernautError. */
export function decideCommand(record: MachineRecord, command: Command, context: DecideContext): Decision {
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

/** What a command changes apart from state and goal. */
function changesBy(
  record: MachineRecord,
  command: Command,
  { now, id, limits }: DecideContext,
): Partial<MachineRecord> {
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
    requestedAt: now.toISOString(),
  };
  return { ...crash, ...restarts, pending };
}
