/** Whether a machine works, as far as the platform can tell. */
import type { CheckResult } from "./check.ts";
import type { MachineRecord } from "./machine.ts";

/** A judgement, and a clause for people that follows "the machine has the new version, and". */
export interface Health {
  /**
   * `healthy`: the machine is running, its app listens on the ports of its services, and all its checks pass.
   * `unhealthy`: it is running, and requests cannot reach it or a check failed after its grace period. `unknown`: it is
   * too early to tell, or the machine is not running.
   */
  status: "healthy" | "unhealthy" | "unknown";
  reason: string;
}

type Judged = Pick<MachineRecord, "state" | "stateReason" | "unreachable" | "crash" | "config">;

/** Judges a machine by its record and the latest results of its checks. */
export function healthOf(record: Judged, checks: readonly CheckResult[]): Health {
  if (record.state !== "running") return { status: "unknown", reason: notRunning(record) };
  if ((record.unreachable ?? null) !== null) return { status: "unhealthy", reason: record.unreachable as string };
  const failed = checks.find(({ status }) => status === "critical");
  if (failed !== undefined) return { status: "unhealthy", reason: `its check ${failed.name} fails: ${failed.output}` };
  const expected = Object.keys(record.config.checks ?? {}).length;
  return expected === 0 ? unchecked(record) : checked(checks, expected);
}

function notRunning({ state, stateReason, crash }: Judged): string {
  if ((crash ?? null) !== null) return `it crashed${crash?.at_start ? " on start" : ""}: ${crash?.reason}`;
  return `it is ${state}${(stateReason ?? null) === null ? "" : `: ${stateReason}`}`;
}

/** While it is running, a machine has a reason only as long as its app does not listen on all ports. */
function unchecked({ stateReason, config }: Judged): Health {
  if ((stateReason ?? null) !== null) return { status: "unknown", reason: stateReason as string };
  const works = (config.services ?? []).length === 0 ? "it is up" : "it answers on its ports";
  return { status: "healthy", reason: works };
}

function checked(checks: readonly CheckResult[], expected: number): Health {
  const passing = checks.filter(({ status }) => status === "passing").length;
  if (passing >= expected) return { status: "healthy", reason: "its checks pass" };
  const found = checks.filter(({ status }) => status !== "passing").map(({ name, output }) => `${name}: ${output}`);
  return { status: "unknown", reason: found.join("; ") || "its checks have not run yet" };
}
