/** What a machine's checks mean: pure rules. */
import type { CheckResult } from "@hibernaut/domain/check";
import { milliseconds, withinBounds } from "@hibernaut/domain/check-times";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { CheckConfig } from "@hibernaut/domain/service-config";

const INTERVAL_MS = 15_000;
const TIMEOUT_MS = 5_000;
const GRACE_MS = 10_000;
/** How often a check runs that is not passing, in milliseconds: a request may be waiting for the machine. */
export const EAGER_MS = 250;

/** A check with its defaults filled in; times in milliseconds. */
export interface HealthCheck {
  name: string;
  type: "tcp" | "http";
  port: number;
  intervalMs: number;
  timeoutMs: number;
  graceMs: number;
  method: string;
  path: string;
  headers: Record<string, string[]>;
}

/** Returns a machine's checks. A check without a port, on a machine without services, has no target and is left out. */
export function checksOf(config: MachineConfig): HealthCheck[] {
  return Object.entries(config.checks ?? {}).flatMap(([name, check]) => {
    const port = check.port ?? config.services?.[0]?.internal_port;
    return port === undefined ? [] : [checkOf(name, port, check)];
  });
}

function checkOf(name: string, port: number, check: CheckConfig): HealthCheck {
  return {
    name,
    type: check.type,
    port,
    intervalMs: withinBounds(milliseconds(check.interval) ?? INTERVAL_MS),
    timeoutMs: withinBounds(milliseconds(check.timeout) ?? TIMEOUT_MS),
    graceMs: milliseconds(check.grace_period) ?? GRACE_MS,
    method: (check.method ?? "GET").toUpperCase(),
    path: check.path ?? "/",
    headers: Object.fromEntries((check.headers ?? []).map((header) => [header.name, header.values])),
  };
}

/** What a probe found. `output` is for people. */
export interface ProbeResult {
  passed: boolean;
  output: string;
}

/** Returns the result after a probe. Within its grace period, a check that has not passed yet fails with a warning only. */
export function judge(
  check: HealthCheck,
  found: ProbeResult,
  before: CheckResult | undefined,
  sinceStartMs: number,
): CheckResult {
  const fresh = before?.status !== "passing" && before?.status !== "critical";
  const status = found.passed ? "passing" : fresh && sinceStartMs < check.graceMs ? "warning" : "critical";
  return { name: check.name, status, output: found.output, updated_at: new Date().toISOString() };
}

/** Returns the milliseconds from the end of one probe to the next. */
export function nextCheckMs(check: HealthCheck, result: CheckResult): number {
  return result.status === "passing" ? check.intervalMs : Math.min(check.intervalMs, EAGER_MS);
}

/** Returns whether a machine with these checks may take requests: all passed when they last ran. */
export function isHealthy(checks: readonly HealthCheck[], results: readonly CheckResult[]): boolean {
  return checks.every(({ name }) => results.some((result) => result.name === name && result.status === "passing"));
}
