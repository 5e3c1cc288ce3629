/** What fails now. Pure. */
import type { BackupDrill, BackupTarget, Machine } from "@hibernaut/client/browser";
import type { Route } from "../routes.ts";

/** Something that someone should look at. */
export interface Problem {
  /** Names it among all. */
  key: string;
  /** What it is about, such as `shop / web`, and the page of that. */
  subject: string;
  to: Route;
  level: "error" | "warning";
  /** What is wrong, in a few words. */
  title: string;
  /** The platform's own words. */
  detail: string;
}

/** What is wrong, without what it is about. */
type Fault = Pick<Problem, "level" | "title" | "detail">;

/** Returns what is wrong with machines, the worst first. */
export function problemsOf(machines: Iterable<Machine>): Problem[] {
  return Array.from(machines, (machine): Problem | undefined => {
    const fault = faultOf(machine);
    const { machine_id: id, app_name: app, name } = machine;
    return fault && { key: id, subject: `${app} / ${name}`, to: { page: "machine", app, machine: id }, ...fault };
  })
    .filter((problem) => problem !== undefined)
    .sort(
      (a, b) => Number(a.level === "warning") - Number(b.level === "warning") || a.subject.localeCompare(b.subject),
    );
}

/** Returns what is wrong with a machine. Undefined if it is well. */
export function faultOf(machine: Machine): Fault | undefined {
  const { state, state_reason: reason, crash, health, checks, unreachable, host, host_state: hostState } = machine;
  if (hostState === "unreachable") return error(`Host ${host} is unreachable`, unreachable ?? "");
  if (state === "failed") return error("Failed", reason ?? "");
  if (state === "restarting" && crash !== null)
    return error(`App crashed, attempt ${crash.attempt} of ${crash.max_attempts} follows`, crash.reason);
  if (state === "stopped" && crash !== null && crash.retry_at === null && crash.exit_code !== 0)
    return error("App crashed, and is not started again", crash.reason);
  if (state !== "running") return undefined;
  const bad = checks.find(({ status }) => status === "critical");
  if (bad !== undefined) return error(`Check ${bad.name} fails`, bad.output);
  if (unreachable !== null) return error("Requests cannot reach the app", unreachable);
  if (health.status === "unhealthy") return error("Unhealthy", health.reason);
  const poor = checks.find(({ status }) => status === "warning");
  if (poor !== undefined) return warning(`Check ${poor.name} warns`, poor.output);
  return undefined;
}

/** Returns what is wrong with backups, target by target. */
export function backupProblemsOf(targets: readonly BackupTarget[]): Problem[] {
  return targets.flatMap((target) => {
    const about = (fault: Fault, index: number): Problem => ({
      key: `backup ${target.name} ${index}`,
      subject: `Backups to ${target.name}`,
      to: { page: "backups" },
      ...fault,
    });
    return targetFaults(target).map(about);
  });
}

function targetFaults({ overdue, last, last_check: check, prune_error: kept, ...target }: BackupTarget): Fault[] {
  const reason = last?.state === "failed" ? (last.error?.message ?? "") : undefined;
  return [
    overdue && error("The backup is overdue", reason ?? ""),
    !overdue && reason !== undefined && error("The latest backup failed", reason),
    check !== null && check.error !== null && error("The latest check failed", check.error.message),
    ...drillsOf(target).map(drillFault),
    kept !== null && warning("Old backups could not be deleted", kept),
    last !== null &&
      last.failed_commands.length > 0 &&
      warning("A backup command failed", failedCommands(last.failed_commands)),
    last !== null && last.changed.length > 0 && warning("What never changes has changed", last.changed.join(", ")),
  ].filter((fault) => fault !== false);
}

/** Returns the latest drill of each app, and the latest one if it did not come as far as an app. */
export function drillsOf({ drills, last_drill: last }: Pick<BackupTarget, "drills" | "last_drill">): BackupDrill[] {
  const isListed = last === null || drills.some(({ started_at: at }) => at === last.started_at);
  return isListed ? drills : [last, ...drills];
}

/** A drill that failed before it had chosen an app has no name of one. */
function drillFault({ app_name: app, error: reason }: BackupDrill): Fault | false {
  return reason !== null && error(app === "" ? "A drill failed" : `The drill of ${app} failed`, reason.message);
}

function failedCommands(failed: NonNullable<BackupTarget["last"]>["failed_commands"]): string {
  return failed.map(({ app_name: app, reason }) => `${app}: ${reason}`).join("; ");
}

function error(title: string, detail: string): Fault {
  return { level: "error", title, detail };
}

function warning(title: string, detail: string): Fault {
  return { level: "warning", title, detail };
}
