/** What follows when an app ends by itself, or its virtual machine disappears: the restart policy decides. */
import type { Crash, MachineRecord } from "@hibernaut/domain/machine";
import { afterEnd, afterHostLoss, describeExit } from "../restart.ts";
import type { Details, EffectOutcome } from "./events.ts";
import { bootFacts } from "./facts.ts";

interface Ending {
  type: "app_ended" | "app_restarts" | "lost" | "lost_restarts";
  changes: Partial<MachineRecord>;
  details: Details;
}

/** Whether the machine rests or is started again, and what its record and history say about the end. */
export function decideEnd(
  record: MachineRecord,
  outcome: Extract<EffectOutcome, { type: "app_ended" } | { type: "lost" }>,
  now: Date,
): Ending {
  return outcome.type === "lost" ? decideLost(record, outcome, now) : decideExit(record, outcome, now);
}

function decideLost(
  record: MachineRecord,
  { reason, unwatched }: Extract<EffectOutcome, { type: "lost" }>,
  at: Date,
): Ending {
  // A host that fails again and again does not use up the attempts of its machines, nor keep requests from waiting for them.
  const { restarts, crash } =
    unwatched === true ? afterHostLoss(record, { reason, at }) : afterEnd(record, { exit: undefined, reason, at });
  const changes = { stateReason: reason, restarts, crash, coldReason: "vmm_lost" };
  const attempts = attemptsOf(crash);
  return { type: attempts === null ? "lost" : "lost_restarts", changes, details: { reason, ...attempts } };
}

function decideExit(
  record: MachineRecord,
  { exit, boot }: Extract<EffectOutcome, { type: "app_ended" }>,
  at: Date,
): Ending {
  const reason = describeExit(exit);
  // An app that ended before it was ready counts from the start it ended in.
  const booted = boot === undefined ? {} : bootFacts(record, boot);
  const { restarts, crash } = afterEnd({ ...record, ...booted }, { exit, reason, at });
  const changes = { ...booted, stateReason: reason, restarts, crash };
  const attempts = attemptsOf(crash);
  return { type: attempts === null ? "app_ended" : "app_restarts", changes, details: { ...exit, reason, ...attempts } };
}

/** Which attempt the next start is; null if the restart policy gives none. */
function attemptsOf(crash: Crash | null): { attempt: number; max_attempts: number } | null {
  if (crash === null || crash.retry_at === null) return null;
  return { attempt: crash.attempt, max_attempts: crash.max_attempts };
}
