/** What fails now. Pure. */
import type { Machine } from "@hibernaut/client/browser";

/** Something that someone should look at. */
export interface Problem {
  machine: Machine;
  level: "error" | "warning";
  /** What is wrong, in a few words. */
  title: string;
  /** The platform's own words. */
  detail: string;
}

/** Returns what is wrong with machines, the worst first. */
export function problemsOf(machines: Iterable<Machine>): Problem[] {
  return Array.from(machines, problemOf)
    .filter((problem) => problem !== undefined)
    .sort(
      (a, b) =>
        Number(a.level === "warning") - Number(b.level === "warning") ||
        a.machine.app_name.localeCompare(b.machine.app_name) ||
        a.machine.name.localeCompare(b.machine.name),
    );
}

function problemOf(machine: Machine): Problem | undefined {
  const { state, state_reason: reason, crash, health, checks, unreachable, host, host_state: hostState } = machine;
  const as = (level: Problem["level"], title: string, detail: string) => ({ machine, level, title, detail });
  if (hostState === "unreachable") return as("error", `Host ${host} is unreachable`, unreachable ?? "");
  if (state === "failed") return as("error", "Failed", reason ?? "");
  if (state === "restarting" && crash !== null)
    return as("error", `App crashed, attempt ${crash.attempt} of ${crash.max_attempts} follows`, crash.reason);
  if (state === "stopped" && crash !== null && crash.retry_at === null && crash.exit_code !== 0)
    return as("error", "App crashed, and is not started again", crash.reason);
  if (state !== "running") return undefined;
  const bad = checks.find(({ status }) => status === "critical");
  if (bad !== undefined) return as("error", `Check ${bad.name} fails`, bad.output);
  if (unreachable !== null) return as("error", "Requests cannot reach the app", unreachable);
  if (health.status === "unhealthy") return as("error", "Unhealthy", health.reason);
  const poor = checks.find(({ status }) => status === "warning");
  if (poor !== undefined) return as("warning", `Check ${poor.name} warns`, poor.output);
  return undefined;
}
