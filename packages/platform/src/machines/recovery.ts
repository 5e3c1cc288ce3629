/** What to do with a machine when the platform comes back: a pure plan from what was recorded and what is there. */
import type { Effect, Outcome } from "./lifecycle.ts";
import type { MachineRecord } from "../domain/machine.ts";

/** What is found on the host. */
export interface Observed {
  /** The machine's VMM process, if one is alive and answers. */
  vmm: "running" | "paused" | "none";
  /** Generations that are whole on disk. */
  published: readonly string[];
}

export interface RecoveryPlan {
  /**
   * `adopt`: the guest goes on unnoticed. `wake`: the same, but its CPUs stood still: run them and
   * set the clock. `kill`: it must not go on.
   */
  vmm: "none" | "adopt" | "wake" | "kill";
  /** The one generation to keep; all others are discarded. */
  keep: string | null;
  next: { kind: "rest" } | { kind: "effect"; effect: Effect } | { kind: "outcome"; outcome: Outcome };
  /** For the machine's history; empty when there is nothing to tell. */
  reason: string;
}

type Recorded = Pick<MachineRecord, "state" | "snapshot" | "capturing">;

/**
 * The rules, in the order of what they protect: no snapshot runs twice, no machine runs twice, no
 * guest that runs is disturbed, what was asked for is finished.
 */
export function planRecovery(recorded: Recorded, { vmm, published }: Observed): RecoveryPlan {
  const snapshot = recorded.snapshot?.generation ?? null;
  const alive = vmm !== "none";
  const goOn = vmm === "paused" ? "wake" : "adopt";
  const end = alive ? "kill" : "none";
  const effect = (name: Effect) => ({ kind: "effect", effect: name }) as const;
  const outcome = (name: Outcome) => ({ kind: "outcome", outcome: name }) as const;

  switch (recorded.state) {
    case "created":
    case "stopped":
    case "destroyed":
      return { vmm: end, keep: null, next: { kind: "rest" }, reason: alive ? "a machine at rest had a VMM" : "" };
    case "suspended":
    case "failed": // a resume for which QEMU could not be started keeps its snapshot
      return { vmm: end, keep: snapshot, next: { kind: "rest" }, reason: "" };
    case "running":
      if (alive) return { vmm: goOn, keep: null, next: { kind: "rest" }, reason: "adopted" };
      return { vmm: "none", keep: null, next: outcome("lost"), reason: "the VMM ended while the platform was away" };
    case "starting":
      // The snapshot is consumed in the store before the guest runs. Not consumed: the guest has not
      // run, its memory file is as it was, and the start is made again from the beginning.
      if (snapshot !== null) return { vmm: end, keep: snapshot, next: effect("boot"), reason: "start made again" };
      if (alive) return { vmm: goOn, keep: null, next: effect("boot"), reason: "start goes on" };
      return { vmm: "none", keep: null, next: effect("boot"), reason: "start made again" };
    case "suspending":
      return planSuspending(recorded.capturing, vmm, published);
    case "restarting":
      return { vmm: end, keep: snapshot, next: effect("back_off"), reason: "restart is due" };
    case "stopping":
      return { vmm: alive ? goOn : "none", keep: null, next: effect("halt"), reason: "stop goes on" };
    case "updating":
      return { vmm: alive ? goOn : "none", keep: null, next: effect("apply_update"), reason: "update goes on" };
    case "destroying":
      return { vmm: end, keep: null, next: effect("remove"), reason: "destroy goes on" };
  }
}

/**
 * A cancel removes the generation before the guest goes on. So a published generation whose guest
 * stands still, or is gone, is the machine's last state, and one whose guest runs is stale.
 */
function planSuspending(capturing: string | null, vmm: Observed["vmm"], published: readonly string[]): RecoveryPlan {
  const whole = capturing !== null && published.includes(capturing);
  if (whole && vmm !== "running") {
    const next = { kind: "outcome", outcome: "captured" } as const;
    return { vmm: vmm === "none" ? "none" : "kill", keep: capturing, next, reason: "the snapshot was whole" };
  }
  if (vmm === "none") {
    return { vmm, keep: null, next: { kind: "outcome", outcome: "lost" }, reason: "the VMM ended during a suspend" };
  }
  const next = { kind: "outcome", outcome: "capture_cancelled" } as const;
  return {
    vmm: vmm === "paused" ? "wake" : "adopt",
    keep: null,
    next,
    reason: "the platform ended during the suspend",
  };
}
