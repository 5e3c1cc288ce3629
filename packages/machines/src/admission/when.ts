/** Which events start a guest where there is none: they need room. Pure. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Command } from "../decide/index.ts";
import { mayHaveGuest } from "../decide/step.ts";
import { scheduleDue } from "../schedule/due.ts";

/** Whether a command starts the machine. One whose guest is still there has its room already. */
export function mayStart({ state }: Pick<MachineRecord, "state">, { type }: Command): boolean {
  if (mayHaveGuest(state) || state === "destroyed") return false;
  return type === "start" || (type === "restart" && state !== "suspended");
}

/** Whether the machine's schedule, or the wake that it planned, starts it now. */
export function startIsDue(record: MachineRecord, now: Date): boolean {
  if (mayHaveGuest(record.state) || record.state === "destroyed") return false;
  const { wakeAt = null } = record;
  return scheduleDue(record, now)?.kind === "run" || (wakeAt !== null && Date.parse(wakeAt) <= now.getTime());
}
