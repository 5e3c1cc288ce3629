/** Which running machines of an app may go to sleep: a pure rule. */
import type { ServicePolicy } from "./service-policy.ts";

export interface IdleMachine {
  id: string;
  /** In the unit of its service. */
  load: number;
  /** Since when its load has been zero, in milliseconds; 0 while it is not. */
  idleMs: number;
  /** The app in it asked to be kept awake. */
  keptAwake: boolean;
  policy: ServicePolicy;
}

/**
 * With n running machines of which k are at or over their soft limit, k + 1 are needed: those, and one with room.
 * What is more than that, and idle, goes to sleep in one pass, the longest idle first; a single machine
 * goes when it is idle. Never are fewer left than `min_machines_running`.
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
