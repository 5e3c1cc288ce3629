/** Which running machines of an app are in excess, and which may sleep: pure rules. */
import type { ServicePolicy } from "./service-policy.ts";

export interface IdleMachine {
  id: string;
  /** In the unit of the machine's service. */
  load: number;
  /** How long the load has been zero, in milliseconds; 0 while it is not. */
  idleMs: number;
  /** The app asked to be kept awake, or a command is running in the machine. */
  keptAwake: boolean;
  /** Whether something would wake it. A worker without a connection waits for nothing. */
  wakeable: boolean;
  /** Out of the rotation for new requests: it sleeps as soon as those that are open have ended. */
  resting: boolean;
  policy: ServicePolicy;
}

/** Returns the machines that share the load of their app. A pinned one has work of its own, and spares no other any. */
export function sharing<T extends { policy?: ServicePolicy | undefined }>(running: readonly T[]): T[] {
  return running.filter(({ policy }) => policy?.pinned !== true);
}

/**
 * Returns how many of the machines that share the load their app needs: those at or over their soft limit, and one with
 * room.
 */
export function neededOf(running: readonly Pick<IdleMachine, "load" | "policy">[]): number {
  const machines = sharing(running);
  const busy = machines.filter((machine) => machine.load >= machine.policy.softLimit).length;
  return Math.min(machines.length, busy + 1);
}

/**
 * Returns the ids of the machines in excess, which get no new requests: otherwise a steady light load, spread over all of
 * them, would keep each awake. Those that rest already come first, then those with the least load; of equals the last,
 * because the first are given requests first.
 *
 * @param lately how many machines the app has needed at once within the idle timeout
 */
export function planRest(running: readonly IdleMachine[], lately: number): Set<string> {
  const machines = sharing(running);
  const least = Math.max(1, ...machines.map((machine) => machine.policy.minRunning));
  const excess = machines.length - Math.max(lately, least);
  const sleepy = machines.filter(({ policy, keptAwake }) => policy.autostop !== "off" && !keptAwake);
  const order = sleepy.toReversed().toSorted((a, b) => Number(b.resting) - Number(a.resting) || a.load - b.load);
  return new Set(order.slice(0, Math.max(0, excess)).map(({ id }) => id));
}

/**
 * Returns the ids of the machines to put to sleep. With n running machines, k of which are at or over their soft limit,
 * k + 1 are needed. Idle and resting machines beyond that sleep in one pass, the longest idle first. A
 * single machine sleeps when it is idle. At least `min_machines_running` keep running. Each pinned machine is judged
 * alone.
 */
export function planSleep(running: readonly IdleMachine[]): string[] {
  const alone = running.filter((machine) => machine.policy.pinned && isIdle(machine)).map(({ id }) => id);
  return [...alone, ...planShared(sharing(running))];
}

function planShared(machines: readonly IdleMachine[]): string[] {
  const excess = machines.length === 1 ? 1 : machines.length - neededOf(machines);
  const least = Math.max(0, ...machines.map((machine) => machine.policy.minRunning));
  const most = Math.min(excess, machines.length - least);
  if (most <= 0) return [];
  return machines
    .filter(isIdle)
    .toSorted((a, b) => b.idleMs - a.idleMs)
    .slice(0, most)
    .map((machine) => machine.id);
}

function isIdle({ load, idleMs, keptAwake, wakeable, resting, policy }: IdleMachine): boolean {
  return (
    policy.autostop !== "off" && wakeable && load === 0 && !keptAwake && (resting || idleMs >= policy.idleTimeoutMs)
  );
}
