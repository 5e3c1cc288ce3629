/** What is said about targets of backups, and why something cannot be done there now. Pure. */
import type { BackupDrill, BackupTarget, Session } from "@hibernaut/client/browser";
import { lackOf } from "../../data/rights.ts";
import { bytes, duration } from "../../format.ts";

type Running = NonNullable<BackupTarget["running"]>;
type Count = BackupDrill["counts"][number];

const PHASES: Readonly<Record<Running["phase"], string>> = {
  copying: "Backing up",
  verifying: "Verifying the backup",
  deleting: "Deleting old backups",
  checking: "Checking what is stored",
  restoring: "Restoring an app",
  drilling: "Trying an app in a drill",
};

/** Says what happens at a target. */
export function phaseText({ phase }: Running): string {
  return PHASES[phase];
}

/** Says how large the latest backup was, if it counts. */
export function sizeText({ state, bytes: size, added }: NonNullable<BackupTarget["last"]>): string | undefined {
  return state === "complete" ? `${bytes(size)}, ${bytes(added)} of it new` : undefined;
}

/** Says what a drill counted, and what the one before did. */
export function countText({ name, machine, value, minimum, before, note }: Count): string {
  const found = value === null ? (note ?? "not counted") : value.toLocaleString("en-US");
  const earlier = before === null ? "" : `, ${before.toLocaleString("en-US")} in the drill before`;
  return `${name} in ${machine}: ${found}, at least ${minimum.toLocaleString("en-US")}${earlier}`;
}

/** Says how a machine came up in a drill. */
export function machineText({ name, health, start, took_ms: took, note }: BackupDrill["machines"][number]): string {
  const how = health === "healthy" ? `healthy after ${duration(took ?? 0)} (${start ?? ""})` : health;
  return `${name}: ${how}${note === null ? "" : `, ${note}`}`;
}

/** Why nothing can be begun at any target; undefined if it can. There is one such work at a time on the platform. */
export function beginRefusal(
  targets: readonly Pick<BackupTarget, "name" | "running">[],
  session: Pick<Session, "scopes">,
): string | undefined {
  const busy = targets.find(({ running }) => running !== null);
  return (
    lackOf(session, "admin") ??
    (busy && `There is one such work at a time. Wait until that at ${busy.name} has ended, or cancel it.`)
  );
}

/** Why nothing can be canceled at a target; undefined if it can. */
export function cancelRefusal(
  { running }: Pick<BackupTarget, "running">,
  session: Pick<Session, "scopes">,
): string | undefined {
  const lack = lackOf(session, "admin");
  if (lack !== undefined || running === null) return lack ?? "Nothing runs at this target.";
  return running.phase === "deleting" ? "The backup counts already. Old ones are being deleted." : undefined;
}
