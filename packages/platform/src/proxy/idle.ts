/** Which running machines of an app may sleep: a pure rule. */
import type { ServicePolicy } from "./service-policy.ts";

export interface IdleMachine {
  id: string;
  /** In the unit of the machine's service. */
  load: number;
  /** How long the load has been zero, in milliseconds; 0 while it is not. */
  idleMs: number;
  /** The app asked to be kept awake, or a command is running in the machine. */
  keptAwake: boolean;
  policy: ServicePolicy;
}

/**
 * Returns the ids of the machines to put to sleep. With n running machines, k of which are at or over their soft limit,
 * k + 1 are needed: those, and one with room. Idle machines beyond that sleep in one pass, the longest idle first. A
 * single machine sleeps when it is idle. At least `min_machines_running` keep running.
 */
export function planSleep(running: readonly IdleMachine[]): string[] {
  const busy = running.filter((machine) => machine.load >= machine.policy.softLimit).length;
  const excess = running.length === 1 ? 1 : running.length - (busy + 1);
  const least = Math.max(0, ...running.map((machine) => machine.policy.minRunning));
  const most = Math.min(excess, running.length - least);
  if (most <= 0) return [];
  return running
    .filter(isIdle)
    .toSorted((a, b) => b.idleMs - a.idleMs)
    .slice(0, most)
    .map((machine) => machine.id);
}

function isIdle({ load, idleMs, keptAwake, policy }: IdleMachine): boolean {
  return policy.autostop !== "off" && load === 0 && !keptAwake && idleMs >= policy.idleTimeoutMs;
}
