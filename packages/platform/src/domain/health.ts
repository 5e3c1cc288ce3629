/** Whether a machine works, as far as the platform can tell. */
import type { CheckResult } from "./check.ts";
import type { MachineRecord } from "./machine.ts";

/**
 * Judges a machine. `healthy`: it is running, its app listens on the ports of its services, and all its checks pass.
 * `unhealthy`: it is running, and requests cannot reach it or a check failed after its grace period. `unknown`: it is
 * too early to tell, or the machine is not running.
 */
export function healthOf(
  { state, stateReason, unreachable, config }: Pick<MachineRecord, "state" | "stateReason" | "unreachable" | "config">,
  checks: readonly CheckResult[],
): "healthy" | "unhealthy" | "unknown" {
  if (state !== "running") return "unknown";
  if ((unreachable ?? null) !== null || checks.some(({ status }) => status === "critical")) return "unhealthy";
  const expected = Object.keys(config.checks ?? {}).length;
  const passing = checks.filter(({ status }) => status === "passing").length;
  // While it is running, a machine has a reason only as long as its app does not listen on all ports.
  if (expected === 0) return (stateReason ?? null) === null ? "healthy" : "unknown";
  return passing >= expected ? "healthy" : "unknown";
}
