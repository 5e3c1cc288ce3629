/** Whether a machine may be suspended, and what an idle one does if it may not. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { suspendEligibility } from "../eligibility.ts";
import type { DecideContext } from "./decision.ts";
import type { Command } from "./events.ts";

/** `failed_precondition` with every requirement that is not met; undefined if the machine may be suspended. */
export function refusedSuspend(record: MachineRecord, { limits }: DecideContext): HibernautError | undefined {
  const { eligible, reasons } = suspendEligibility(record, limits);
  if (eligible) return undefined;
  const message = `Machine ${record.id} cannot be suspended: ${reasons.join("; ")}.`;
  return new HibernautError("failed_precondition", message, { machine_id: record.id, reasons });
}

/**
 * What an idle machine does. One that cannot be suspended must not lose the files that it wrote: it is stopped with its
 * writable layer kept, or keeps running.
 */
export function sleepCommand(
  record: MachineRecord,
  { how, otherwise = "stop", details = {} }: Extract<Command, { type: "sleep" }>,
  { limits }: DecideContext,
): Extract<Command, { type: "suspend" | "stop" }> | { type: "stay_awake"; reason: string } {
  if (how === "stop") return { type: "stop", details };
  const { eligible, reasons } = suspendEligibility(record, limits);
  if (eligible) return { type: "suspend", details };
  const reason = `it cannot be suspended: ${reasons.join("; ")}`;
  if (otherwise === "off") return { type: "stay_awake", reason };
  return { type: "stop", keepLayer: reason, details: { ...details, reason, keep_layer: true } };
}
