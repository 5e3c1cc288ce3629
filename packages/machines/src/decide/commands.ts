/** Deciding what someone requests. */
import type { StopConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { restAfterUpdate } from "../restart.ts";
import { isFinal } from "./auto-destroy.ts";
import { COMMAND_TABLE } from "./command-table.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { Command, Details } from "./events.ts";
import { noteNotSuspended } from "./notes.ts";
import { occupies } from "./occupies.ts";
import { endsPrewarm, prewarmAfter } from "./prewarm.ts";
import { refusedSuspend, sleepCommand } from "./sleep.ts";
import { mayHaveGuest, refused, step, unchanged } from "./step.ts";
import { superseding } from "./stop-terms.ts";

/** States in which a machine that has a snapshot will resume from it, unless someone discards it. */
const WILL_RESUME: readonly MachineState[] = ["suspended", "failed", "starting"];

/** Whether a command starts a guest where there is none, which needs room. */
export function mayStart({ state }: Pick<MachineRecord, "state">, { type }: Command): boolean {
  if (mayHaveGuest(state) || state === "destroyed") return false;
  return type === "start" || (type === "restart" && state !== "suspended");
}

/** Decides a command. What the lifecycle does not allow is refused with a HibernautError. */
export function decideCommand(record: MachineRecord, command: Command, context: DecideContext): Decision {
  if (command.type === "move_bundle") return moveBundle(record, command.details, context);
  if (command.type === "sleep") return decideSleep(record, command, context);
  const { goal, state, id } = record;
  const answer = COMMAND_TABLE[state][command.type]({
    goal,
    force: command.type === "destroy" && command.force === true,
    final: isFinal(record, command),
    onTerms: termsOf(command) !== undefined,
  });
  if (answer.kind === "refuse") {
    const message = `Machine ${id} is ${state}: ${answer.reason}.`;
    return refused(record, new HibernautError(answer.code, message, { machine_id: id, state }));
  }
  const ineligible = command.type === "suspend" && answer.kind === "move" && refusedSuspend(record, context);
  if (ineligible) return refused(record, ineligible);
  const reason = command.type === "discard_snapshot" ? { reason: command.reason } : {};
  const details = { ...reason, ...command.details };
  const changes = {
    ...changesBy(record, { command, moves: answer.kind === "move" }, context),
    ...prewarmAfter(record, command, context.now),
  };
  const stepped = step(record, { type: command.type, answer, changes, details }, context);
  const decision = onTerms(stepped, record, command, context);
  const overQuota = !occupies(record) && occupies(decision.record) ? context.startRefusal?.() : undefined;
  if (overQuota !== undefined) return refused(record, overQuota);
  // A request waits for this one, and a power cut that loses it ends the request, too.
  return command.type === "start" && command.unattended === true ? { ...decision, unsynced: true } : decision;
}

/** A stop on terms of its own. It takes the place of one under way whose end it brings nearer, which the history tells. */
function onTerms(
  decision: Decision,
  { state, config }: MachineRecord,
  command: Command,
  context: DecideContext,
): Decision {
  const terms = termsOf(command);
  const { record, tell } = decision;
  if (terms === undefined || record.state !== "stopping") return decision;
  if (state !== "stopping") return { ...decision, effect: { type: "halt", terms } };
  const next = superseding(config.stop_config, context.stopTerms ?? {}, terms);
  if (next === undefined) return decision;
  const at = context.now.toISOString();
  const history = tell.history ?? { at, type: command.type, from: state, to: state, details: command.details ?? {} };
  const effect = { type: "halt", ...next } as const;
  return { ...decision, record: { ...record, updatedAt: at }, effect, tell: { ...tell, history } };
}

function termsOf(command: Command): StopConfig | undefined {
  return command.type === "stop" || command.type === "restart" ? command.terms : undefined;
}

/** An idle machine is suspended or stopped, or keeps running because its owner wants that of one that cannot be suspended. */
function decideSleep(
  record: MachineRecord,
  sleep: Extract<Command, { type: "sleep" }>,
  context: DecideContext,
): Decision {
  const command = sleepCommand(record, sleep, context);
  if (command.type !== "stay_awake") return decideCommand(record, command, context);
  if (record.state !== "running") return unchanged(record);
  return noteNotSuspended(record, { by: "proxy", reason: command.reason }, context, sleep.details);
}

/**
 * Moves a machine to the newest guest bundle by an update, unless it has that already. A new bundle needs a boot, and a boot
 * would cost a machine its memory, which is worth more than the bundle: one that will resume does so with its own bundle
 * until a cold start comes for another reason.
 */
function moveBundle(record: MachineRecord, details: Details = {}, context: DecideContext): Decision {
  const { config, imageDigest, state, snapshot, bundleVersion } = record;
  const update = decideCommand(record, { type: "update", config, imageDigest, details }, context);
  if (update.tell.refusal !== undefined) return update;
  if (bundleVersion === context.limits.currentBundle) return unchanged(record);
  if (snapshot === null || !WILL_RESUME.includes(state)) return update;
  if ((record.bundleMove ?? null) !== null) return unchanged(record);
  const at = context.now.toISOString();
  const next = { ...record, bundleMove: { version: context.id }, updatedAt: at };
  const reason = "the machine keeps its snapshot, and gets the newest guest bundle at its next cold start";
  const history = { at, type: "update", from: state, to: state, details: { ...details, reason } };
  return { record: next, effect: null, tell: { history, followers: true } };
}

/** What a command changes apart from state and goal. */
function changesBy(
  record: MachineRecord,
  { command, moves }: { command: Exclude<Command, { type: "sleep" | "move_bundle" }>; moves: boolean },
  { now, id, limits }: DecideContext,
): Partial<MachineRecord> {
  // A machine that was asleep, or on its way, before a drain does not start after it.
  if (command.type === "suspend") return moves && command.drain === true ? { drained: true } : {};
  if (command.type === "discard_snapshot")
    return record.snapshot === null ? {} : { snapshot: null, coldReason: command.reason };
  // The end of a prewarm that failed is not for a person who looked into it.
  const crash = (record.crash ?? null) === null || endsPrewarm(command) ? {} : { crash: null };
  // Someone looks after the machine: earlier failures no longer count.
  const restarts = command.type === "start" && command.unattended === true ? {} : { restarts: 0 };
  if (command.type !== "update") return { ...crash, ...restarts, ...layerAfter(record, command, moves) };
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

/** Whether the stop that begins keeps the writable layer. A stop in progress stays what it is. */
function layerAfter(
  record: MachineRecord,
  command: Exclude<Command, { type: "sleep" | "update" | "move_bundle" }>,
  moves: boolean,
): Partial<MachineRecord> {
  const keepLayer = command.type === "stop" ? (command.keepLayer ?? null) : null;
  const begins = moves && (command.type === "stop" || command.type === "restart");
  return begins && keepLayer !== (record.keepLayer ?? null) ? { keepLayer } : {};
}
