/** What a machine's checks mean: pure rules. */
import type { CheckConfig, MachineConfig } from "../domain/config.ts";
import type { CheckResult } from "../domain/check.ts";

const INTERVAL_MS = 15_000;
const TIMEOUT_MS = 5_000;
const GRACE_MS = 10_000;
/** Until a check has passed once it is looked at this often: somebody may be waiting for the machine. */
const EAGER_MS = 250;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A check with its defaults filled in; times in milliseconds. */
export interface Check {
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

/** The checks of a machine. One without a port, on a machine without services, has nothing to look at and is left out. */
export function checksOf(config: MachineConfig): Check[] {
  return Object.entries(config.checks ?? {}).flatMap(([name, check]) => {
    const port = check.port ?? config.services?.[0]?.internal_port;
    return port === undefined ? [] : [checkOf(name, port, check)];
  });
}

function checkOf(name: string, port: number, check: CheckConfig): Check {
  return {
    name,
    type: check.type,
    port,
    intervalMs: milliseconds(check.interval) ?? INTERVAL_MS,
    timeoutMs: milliseconds(check.timeout) ?? TIMEOUT_MS,
    graceMs: milliseconds(check.grace_period) ?? GRACE_MS,
    method: (check.method ?? "GET").toUpperCase(),
    path: check.path ?? "/",
    headers: Object.fromEntries((check.headers ?? []).map((header) => [header.name, header.values])),
  };
}

/** Seconds, or a number with `ms`, `s`, `m` or `h`. */
export function milliseconds(value: number | string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number") return value * 1000;
  const match = /^(\d+)(ms|s|m|h)$/.exec(value);
  return match === null ? undefined : Number(match[1]) * (UNITS[match[2] ?? ""] ?? 1);
}

/** What a look found; `output` is for people. */
export interface Finding {
  passed: boolean;
  output: string;
}

/** The result after a look. A failure within the grace period of a check that has not passed yet is no more than a warning. */
export function judge(
  check: Check,
  finding: Finding,
  before: CheckResult | undefined,
  sinceStartMs: number,
): CheckResult {
  const fresh = before?.status !== "passing" && before?.status !== "critical";
  const status = finding.passed ? "passing" : fresh && sinceStartMs < check.graceMs ? "warning" : "critical";
  return { name: check.name, status, output: finding.output, updated_at: new Date().toISOString() };
}

/** Milliseconds from the end of one look to the next. */
export function nextLookMs(check: Check, result: CheckResult): number {
  return result.status === "passing" ? check.intervalMs : Math.min(check.intervalMs, EAGER_MS);
}

/** Whether a machine with these checks may take requests: all have passed, when last looked at. */
export function isHealthy(checks: readonly Check[], results: readonly CheckResult[]): boolean {
  return checks.every(({ name }) => results.some((result) => result.name === name && result.status === "passing"));
}
