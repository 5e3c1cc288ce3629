/** What becomes of a prewarm with each command and outcome. `machines/prewarm/` judges when it is over. */
import type { MachineRecord, Prewarm } from "@hibernaut/domain/machine";
import { restAfterUpdate } from "../restart.ts";
import type { Command } from "./events.ts";

/** In the details of the commands that end a prewarm as planned. */
export const BY_PREWARM = "prewarm";

/** Whether the machine runs, or is about to, only to sleep again with a snapshot of its new version. */
export function isPrewarming(record: MachineRecord): record is MachineRecord & { prewarm: Prewarm } {
  return record.prewarm?.status === "pending";
}

/** Whether the platform ends a prewarm with this command. */
export function endsPrewarm({ details }: Pick<Command, "details">): boolean {
  return details?.["by"] === BY_PREWARM;
}

/**
 * What a command changes. An update brings a prewarm of its own, or none; only a machine that rests needs one. Any
 * other command takes the machine as it is.
 */
export function prewarmAfter(
  record: MachineRecord,
  command: Exclude<Command, { type: "sleep" | "move_bundle" }>,
  now: Date,
): Partial<MachineRecord> {
  if (command.type === "update") {
    const rest = restAfterUpdate(record);
    const until = rest === "running" || rest === "restarting" ? undefined : command.prewarm;
    const since = now.toISOString();
    if (until !== undefined) return { prewarm: { until, status: "pending", reason: null, since, prepared: false } };
    return (record.prewarm ?? null) === null ? {} : { prewarm: null };
  }
  if (!isPrewarming(record) || endsPrewarm(command)) return {};
  const by = command.details?.["by"] === "proxy" ? "a request" : `a ${command.type.replace("_", " ")}`;
  return { prewarm: { ...record.prewarm, status: "taken", reason: `${by} came first` } };
}

/** What the end of a capture changes: the snapshot is what the prewarm was for. */
export function prewarmCaptured(record: MachineRecord): Partial<MachineRecord> {
  return isPrewarming(record) ? { prewarm: { ...record.prewarm, status: "done" } } : {};
}
