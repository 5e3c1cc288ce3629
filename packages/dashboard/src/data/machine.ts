/** What an event says about a machine. Pure. */
import type { CheckResult, Machine, MachineState, StreamEvent } from "@hibernaut/client/browser";

/** Types of events about checks, by what the check found. */
const CHECKS: Readonly<Record<string, CheckResult["status"]>> = {
  "machine.check_passing": "passing",
  "machine.check_warning": "warning",
  "machine.check_critical": "critical",
};

/**
 * Returns a machine as it is after an event, as far as the event tells; what it does not tell has to be read. Undefined
 * when the machine is gone.
 */
export function machineAfter(machine: Machine, { type, at, data }: StreamEvent): Machine | undefined {
  const found = CHECKS[type];
  if (found !== undefined) return { ...machine, checks: withCheck(machine.checks, found, { at, data }) };
  const { to, reason, start, name } = data;
  if (to === "destroyed") return undefined;
  if (typeof to !== "string") return machine;
  return {
    ...machine,
    state: to as MachineState,
    state_reason: typeof reason === "string" ? reason : null,
    name: typeof name === "string" ? name : machine.name,
    updated_at: at,
    ...(to !== "running" && { checks: [] }),
    ...(to === "running" && { crash: null }),
    ...(isStart(start) && { last_boot: start }),
  };
}

function withCheck(
  checks: readonly CheckResult[],
  status: CheckResult["status"],
  { at, data }: Pick<StreamEvent, "at" | "data">,
): CheckResult[] {
  const name = String(data.check);
  const output = typeof data.output === "string" ? data.output : "";
  const result: CheckResult = { name, status, output, updated_at: at };
  return [...checks.filter((check) => check.name !== name), result];
}

function isStart(start: unknown): start is NonNullable<Machine["last_boot"]> {
  return typeof start === "object" && start !== null && "kind" in start && "duration_ms" in start;
}
