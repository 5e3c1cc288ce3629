/** Which machine takes a request: a pure rule. */
import type { MachineState } from "../domain/machine.ts";

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
}

interface MachineChoice<T extends Candidate> {
  /** The machine that takes the request. Undefined: the request has to wait. */
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

/**
 * Chooses the least loaded running machine below its soft limit, a resting one only if all others are at theirs; one at
 * or over it only if all are, and none at its hard limit. Wakes one more machine, one at a time, if all that run are at their soft limit or none is running.
 */
export function choose<T extends Candidate>(machines: readonly T[]): MachineChoice<T> {
  const underSoft = leastLoaded(machines, "softLimit", false) ?? leastLoaded(machines, "softLimit");
  if (underSoft !== undefined) return { send: underSoft, wake: undefined, hope: true };
  const underHard = leastLoaded(machines, "hardLimit");
  const up = machines.some((machine) => machine.state === "running" && machine.reachable);
  const coming = machines.some((machine) => ON_ITS_WAY.has(machine.state) && !machine.crashing);
  const wake = coming ? undefined : nextToWake(machines);
  return { send: underHard, wake, hope: underHard !== undefined || up || coming || wake !== undefined };
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
    if (machine.state !== "running" || !machine.healthy || !machine.reachable || machine.load >= machine[limit])
      continue;
    if (machine.resting && !resting) continue;
    if (best === undefined || machine.load < best.load) best = machine;
  }
  return best;
}

function nextToWake<T extends Candidate>(machines: readonly T[]): T | undefined {
  const asleep = machines.filter(
    (machine) => machine.autostart && !machine.crashing && WAKE_ORDER.includes(machine.state),
  );
  return asleep.toSorted((a, b) => WAKE_ORDER.indexOf(a.state) - WAKE_ORDER.indexOf(b.state))[0];
}
