/** Which machine takes a request: a pure rule. */
import type { MachineState } from "@hibernaut/domain/machine";

/** What the rule looks at in a machine. */
export interface Candidate {
  id: string;
  state: MachineState;
  /** In the unit of the machine's service. */
  load: number;
  softLimit: number;
  hardLimit: number;
  /** Whether a request may start the machine. */
  autostart: boolean;
  /** Whether the machine's checks let it take requests. */
  healthy: boolean;
  /** Whether the app listens where requests arrive. */
  reachable: boolean;
  /** In excess of what the app needs: the others are given requests first. */
  resting: boolean;
  /** The app keeps crashing: requests neither wait for the machine nor start it. */
  crashing: boolean;
  /**
   * How much less load than a machine of this host one of another host needs in order to be given a request. 0 on this
   * host, which wins a tie.
   */
  distance: number;
}

interface MachineChoice<T extends Candidate> {
  /**
   * The machine that takes the request. Undefined: the request has to wait. One of another host may be asleep or full: the
   * request waits there, because that host decides about it.
   */
  send: T | undefined;
  /** A machine to wake, in addition to that. */
  wake: T | undefined;
  /** Whether waiting makes sense: a machine is on its way, or one that is full will have room again. */
  hope: boolean;
}

/** States from which a machine becomes running without being asked again. */
const ON_ITS_WAY: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating"]);
/** Cheapest first. A machine that is being suspended only has to cancel that. */
const WAKE_ORDER: readonly MachineState[] = ["suspending", "suspended", "stopped", "created", "stopping"];
/** What it costs more to wake a machine of another host: less than to start one that has no snapshot. */
const ELSEWHERE = 0.5;

/**
 * Chooses the least loaded running machine below its soft limit, a resting one only if all others are at theirs; one at
 * or over it only if all are, and none at its hard limit. Wakes one more machine, one at a time, if all that run are at their soft limit or none is running.
 */
export function choose<T extends Candidate>(machines: readonly T[]): MachineChoice<T> {
  const underSoft = leastLoaded(machines, "softLimit", false) ?? leastLoaded(machines, "softLimit");
  if (underSoft !== undefined) return { send: underSoft, wake: undefined, hope: true };
  const underHard = leastLoaded(machines, "hardLimit");
  const up = machines.some(isUp);
  const coming = machines.some(isComing);
  const wake = coming ? undefined : nextToWake(machines);
  if (underHard === undefined) {
    const there = waitsElsewhere(machines, wake);
    if (there !== undefined) return { send: there, wake: undefined, hope: true };
  }
  return { send: underHard, wake, hope: underHard !== undefined || up || coming || wake !== undefined };
}

/** Whether the machine runs, and its app listens where requests arrive. */
export function isUp({ state, reachable }: Pick<Candidate, "state" | "reachable">): boolean {
  return state === "running" && reachable;
}

/** Whether the machine runs, and takes requests. */
export function isReady({ state, healthy, reachable }: Pick<Candidate, "state" | "healthy" | "reachable">): boolean {
  return state === "running" && healthy && reachable;
}

function isComing(machine: Candidate): boolean {
  return ON_ITS_WAY.has(machine.state) && !machine.crashing && machine.reachable;
}

/** Returns the machine of another host that a request waits for there, if no machine of this host gives it any hope. */
function waitsElsewhere<T extends Candidate>(machines: readonly T[], wake: T | undefined): T | undefined {
  if (wake !== undefined) return wake.distance > 0 ? wake : undefined;
  let best: T | undefined;
  for (const machine of machines) {
    if (!isUp(machine) && !isComing(machine)) continue;
    if (machine.distance === 0) return undefined;
    if (best === undefined || machine.load < best.load) best = machine;
  }
  return best;
}

/**
 * Returns the least loaded machine that can take a request and is below its limit. Of equally loaded ones the first, so
 * that a few machines do the work and the others can sleep. Runs for every request: one pass, and no lists.
 */
function leastLoaded<T extends Candidate>(
  machines: readonly T[],
  limit: "softLimit" | "hardLimit",
  resting = true,
): T | undefined {
  let best: T | undefined;
  for (const machine of machines) {
    if (!isReady(machine) || machine.load >= machine[limit]) continue;
    if (machine.resting && !resting) continue;
    if (best === undefined || isBetter(machine, best)) best = machine;
  }
  return best;
}

function isBetter(machine: Candidate, best: Candidate): boolean {
  const less = machine.load + machine.distance - best.load - best.distance;
  return less < 0 || (less === 0 && machine.distance < best.distance);
}

/** Of machines that are as cheap to wake, those of this host come first. */
function nextToWake<T extends Candidate>(machines: readonly T[]): T | undefined {
  const asleep = machines.filter(
    (machine) => machine.autostart && !machine.crashing && machine.reachable && WAKE_ORDER.includes(machine.state),
  );
  const cost = ({ state, distance }: T) => WAKE_ORDER.indexOf(state) + (distance > 0 ? ELSEWHERE : 0);
  return asleep.toSorted((a, b) => cost(a) - cost(b))[0];
}
