/** What follows when an app ends by itself, or its virtual machine disappears: the restart policy decides. */
import type { MachineRecord } from "../../domain/machine.ts";
import { afterEnd, describeExit } from "../restart.ts";
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
  const { exit } = outcome;
  const lost = outcome.type === "lost";
  const reason = exit === undefined ? (lost ? outcome.reason : "") : describeExit(exit);
  // An app that ended before it was ready counts from the start it ended in.
  const boot = outcome.type === "app_ended" && outcome.boot !== undefined ? bootFacts(outcome.boot) : {};
  const { restarts, crash } = afterEnd({ ...record, ...boot }, { exit: lost ? undefined : exit, reason, at: now });
  const changes = { ...boot, stateReason: reason, restarts, crash, ...(lost && { coldReason: "vmm_lost" }) };
  const details = { ...exit, reason };
  if (crash === null || crash.retry_at === null) return { type: outcome.type, changes, details };
  const { attempt, max_attempts } = crash;
  return { type: lost ? "lost_restarts" : "app_restarts", changes, details: { ...details, attempt, max_attempts } };
}
