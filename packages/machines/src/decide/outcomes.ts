/** What the outcome of an effect, or the end of an app, does in each state. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { backOff, boot, halt, move, type Rule, restOrStart } from "./answer.ts";
import { isFinal } from "./auto-destroy.ts";
import { decideEnd } from "./crash.ts";
import type { DecideContext, Decision } from "./decision.ts";
import type { EffectWithOutcome } from "./effect.ts";
import type { EffectFailed, EffectOutcome, OutcomeName } from "./events.ts";
import { factsOf } from "./facts.ts";
import { isPrewarming } from "./prewarm.ts";
import { mayHoldSnapshot, refused, step, unchanged } from "./step.ts";

/** A guest that was killed is started again within the same start: a third time is not an accident. */
const MAX_ATTEMPTS = 3;
/** Between two starts that the host hinders, in milliseconds: each is in the machine's history. */
const HINDERED_WAIT_MS = 10_000;

/** The app ended and will be started again, once what is left of its guest is gone. */
const haltThenBackOff = move("stopping", "halt", "restarting");

const halted: Rule = (situation) => {
  if (situation.goal === "destroyed") return move("destroying", "remove")(situation);
  return (situation.goal === "restarting" ? backOff : restOrStart("stopped"))(situation);
};

const TABLE: Record<MachineState, Partial<Record<OutcomeName, Rule>>> = {
  starting: {
    // The files of a snapshot that was consumed are of no use, but nobody has to wait until they are gone.
    started: ({ resumed }) => move("running", resumed ? "discard_snapshots" : null)({ goal: null }),
    start_failed: move("failed"),
    start_refused: ({ asleep }) => move(asleep === true ? "suspended" : "stopped")({ goal: null }),
    app_ended: halt,
    app_restarts: haltThenBackOff,
  },
  running: {
    app_ended: halt,
    app_restarts: haltThenBackOff,
    lost: move("failed"),
    lost_restarts: backOff,
  },
  suspending: {
    captured: restOrStart("suspended"),
    capture_cancelled: move("running"),
    capture_failed: move("running"),
    lost: move("failed"),
    lost_restarts: backOff,
  },
  stopping: {
    halted,
    halt_failed: move("failed"),
  },
  restarting: { retry: boot },
  updating: {
    updated: ({ goal, from = "stopped", prewarming }) =>
      from === "running" || from === "restarting" || prewarming ? boot({ goal }) : restOrStart(from)({ goal }),
    update_failed: move("failed"),
  },
  destroying: { removed: move("destroyed"), remove_failed: move("failed") },
  created: {},
  suspended: {},
  stopped: {},
  failed: {},
  destroyed: {},
};

/** Decides an outcome. One that the state does not expect comes too late: it is refused, and nothing changes. */
export function decideOutcome(record: MachineRecord, outcome: EffectOutcome, context: DecideContext): Decision {
  if (outcome.type === "start_killed") return decideKilled(record, outcome, context);
  if (outcome.type === "start_hindered") return decideHindered(record, outcome.reason, context);
  const { type, changes, details } =
    outcome.type === "app_ended" || outcome.type === "lost"
      ? decideEnd(record, outcome, context.now)
      : { type: outcome.type, ...factsOf(record, outcome) };
  const resumed = outcome.type === "started" && outcome.boot.lastBoot.kind !== "cold";
  const { goal, pending } = record;
  const asleep = record.snapshot !== null;
  const situation = {
    goal,
    from: pending?.from,
    prewarming: isPrewarming(record),
    resumed,
    asleep,
    final: isFinal(record, { type }),
  };
  const answer = TABLE[record.state][type]?.(situation);
  if (answer === undefined || answer.kind === "refuse") return tooLate(record, type);
  const decision = step(record, { type, answer, changes, details: { ...details, ...outcome.details } }, context);
  // A request waits for this one: an fsync takes as long as the rest of a warm start.
  return resumed ? { ...decision, unsynced: true } : decision;
}

/** An effect that another one took the place of decides nothing, but whether there is a snapshot remains a fact. */
export function decideSuperseded(record: MachineRecord, outcome: EffectOutcome | EffectFailed): Decision {
  if (outcome.type !== "captured" && outcome.type !== "halted" && outcome.type !== "updated") return unchanged(record);
  const snapshot = outcome.type === "captured" && mayHoldSnapshot(record.state) ? outcome.snapshot : null;
  if (snapshot === record.snapshot) return unchanged(record);
  return { record: { ...record, snapshot }, effect: null, tell: {} };
}

/** The outcome of an effect that failed in a way it did not foresee. */
export function failureOf(effect: EffectWithOutcome["type"], reason: string): EffectOutcome {
  switch (effect) {
    case "boot":
      return { type: "start_failed", reason };
    case "back_off":
      return { type: "retry" };
    case "capture":
      return { type: "lost", reason };
    case "halt":
      return { type: "halt_failed", reason };
    case "apply_update":
      return { type: "update_failed", reason };
    case "remove":
      return { type: "remove_failed", reason };
  }
}

function decideKilled(
  record: MachineRecord,
  { reason, start }: Extract<EffectOutcome, { type: "start_killed" }>,
  context: DecideContext,
): Decision {
  if (record.state !== "starting") return tooLate(record, "start_killed");
  if (start.attempt >= MAX_ATTEMPTS) return decideOutcome(record, { type: "start_failed", reason }, context);
  const log = "The virtual machine was killed during the start. Trying again.";
  return { record, effect: { ...start, attempt: start.attempt + 1 }, tell: { log } };
}

/**
 * The host will be able to start the machine again: that is tried for as long as nothing else is requested. A snapshot is lost
 * in that wait, so a machine that has one rests with it until it is started again.
 */
function decideHindered(record: MachineRecord, reason: string, context: DecideContext): Decision {
  if (record.state !== "starting") return tooLate(record, "start_hindered");
  if (record.snapshot !== null) return decideOutcome(record, { type: "start_failed", reason }, context);
  const answer = { kind: "move", to: "restarting", goal: null, effect: "back_off" } as const;
  const told = { changes: { stateReason: reason }, details: { reason } };
  const until = new Date(context.now.getTime() + HINDERED_WAIT_MS).toISOString();
  return {
    ...step(record, { type: "start_hindered", answer, ...told }, context),
    effect: { type: "back_off", until },
  };
}

function tooLate(record: MachineRecord, outcome: string): Decision {
  const message = `Machine ${record.id} is ${record.state}: ${outcome} came too late.`;
  return refused(record, new HibernautError("aborted", message, { machine_id: record.id, state: record.state }));
}
