/** Which machine takes a request: a pure rule. */
import type { MachineState } from "../domain/machine.ts";

export interface Candidate {
  id: string;
  state: MachineState;
  /** In the unit of its service. */
  load: number;
  softLimit: number;
  hardLimit: number;
  autostart: boolean;
  /** Its checks let it take requests. */
  healthy: boolean;
  /** Its app listens where requests come. */
  reachable: boolean;
  /** Its app crashes again and again: it is neither waited for nor started by requests. */
  crashing: boolean;
}

export interface Choice {
  /** Give the request to this machine. Undefined: it has to wait. */
  send: string | undefined;
  /** Start this machine, beside that. */
  wake: string | undefined;
  /** Whether waiting makes sense: a machine is on its way, or one that is full will have room again. */
  hope: boolean;
}

/** States from which a machine comes to run by itself, or because it was asked to already. */
const ON_ITS_WAY: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating"]);
/** Cheapest first. A machine that is being suspended only has to be told to go on. */
const WAKE_ORDER: readonly MachineState[] = ["suspending", "suspended", "stopped", "created", "stopping"];

/**
 * The least loaded running machine under its soft limit; one at or over it only when all are, and none over its
 * hard limit. Another one is started when all that run are at the soft limit, or none runs: one at a time.
 */
export function choose(machines: readonly Candidate[]): Choice {
  const underSoft = leastLoaded(machines, "softLimit");
  if (underSoft !== undefined) return { send: underSoft.id, wake: undefined, hope: true };
  const underHard = leastLoaded(machines, "hardLimit");
  const up = machines.some((machine) => machine.state === "running" && machine.reachable);
  const coming = machines.some((machine) => ON_ITS_WAY.has(machine.state) && !machine.crashing);
  const wake = coming ? undefined : nextToWake(machines);
  return {
    send: underHard?.id,
    wake: wake?.id,
    hope: underHard !== undefined || up || coming || wake !== undefined,
  };
}

/**
 * Of those that can take a request and are under their limit; of equal ones the first, so that a few machines do the
 * work and the others can sleep. Runs for every request: one pass, and no lists.
 */
function leastLoaded(machines: readonly Candidate[], limit: "softLimit" | "hardLimit"): Candidate | undefined {
  let best: Candidate | undefined;
  for (const machine of machines) {
    if (machine.state !== "running" || !machine.healthy || !machine.reachable || machine.load >= machine[limit])
      continue;
    if (best === undefined || machine.load < best.load) best = machine;
  }
  return best;
}

function nextToWake(machines: readonly Candidate[]): Candidate | undefined {
  const asleep = machines.filter(
    (machine) => machine.autostart && !machine.crashing && WAKE_ORDER.includes(machine.state),
  );
  return asleep.toSorted((a, b) => WAKE_ORDER.indexOf(a.state) - WAKE_ORDER.indexOf(b.state))[0];
}
