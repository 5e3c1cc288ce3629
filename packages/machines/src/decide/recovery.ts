/** What to do with a machine when the platform starts: a pure plan from what was recorded and what is on the host. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { DecideContext, Decision, TakeOver } from "./decision.ts";
import type { Effect } from "./effect.ts";
import type { EffectOutcome, FoundOnHost, RecoveryStep, TakenOver } from "./events.ts";
import { decideOutcome } from "./outcomes.ts";
import { effectOf, unchanged } from "./step.ts";

type Plan = Pick<TakeOver, "vmm" | "keep" | "next" | "reason">;

/** Nothing is recorded yet: host and record must agree before anything else is decided. */
export function decideFound(record: MachineRecord, found: FoundOnHost): Decision {
  const plan = planRecovery(record, found);
  const hello = !(plan.next.kind === "effect" && plan.next.effect.type === "boot");
  return { record, effect: { type: "take_over", hello, ...plan }, tell: {} };
}

/** What the plan wanted next, unless the guest turned out to be gone, or its app to have ended. */
export function decideTakenOver(
  record: MachineRecord,
  { guest, exit, next }: TakenOver,
  context: DecideContext,
): Decision {
  const decision = afterTakeOver(record, { guest, exit, next }, context);
  if (guest !== "adopted" || decision.tell.refusal !== undefined) return decision;
  const log = "The platform restarted and found the guest running.";
  return { ...decision, tell: { ...decision.tell, log } };
}

function afterTakeOver(
  record: MachineRecord,
  { guest, exit, next }: Pick<TakenOver, "guest" | "next"> & { exit: TakenOver["exit"] | undefined },
  context: DecideContext,
): Decision {
  // An effect copes without the guest: it ends one, or starts a new one.
  if (next.kind === "effect") return { record, effect: next.effect, tell: {} };
  if (guest === "unreachable")
    return decideOutcome(
      record,
      { type: "lost", reason: "the guest did not answer after a restart of the platform" },
      context,
    );
  if (next.kind === "outcome") return decideOutcome(record, next.outcome, context);
  return exit === undefined ? unchanged(record) : decideOutcome(record, { type: "app_ended", exit }, context);
}

/**
 * The rules, in the order of what they protect: no snapshot runs twice, no machine runs twice, no guest that runs is
 * disturbed, what was requested is finished.
 */
function planRecovery(record: MachineRecord, found: FoundOnHost): Plan {
  const snapshot = record.snapshot?.generation ?? null;
  const alive = found.vmm !== "none";
  const run = found.vmm === "paused" ? "wake" : "adopt";
  const end = alive ? "kill" : "none";
  const rest = { kind: "rest" } as const;
  const effect = (name: Effect["type"]): RecoveryStep => ({ kind: "effect", effect: effectOf(name, record, record) });

  switch (record.state) {
    case "created":
    case "stopped":
    case "destroyed":
      return { vmm: end, keep: null, next: rest, reason: alive ? "a machine at rest had a VMM" : "" };
    case "suspended":
    case "failed": // a resume for which QEMU could not be started keeps its snapshot
      return { vmm: end, keep: snapshot, next: snapshot === null ? effect("discard_snapshots") : rest, reason: "" };
    case "running":
      if (alive) return { vmm: run, keep: null, next: rest, reason: "adopted" };
      return { vmm: "none", keep: null, ...lost(record, found.failure ?? "the VMM ended while the platform was away") };
    case "starting":
      // The snapshot is consumed in the store before the guest runs. Not consumed: the guest has not run, its memory
      // file is as it was, and the start is made again from the beginning.
      if (snapshot !== null) return { vmm: end, keep: snapshot, next: effect("boot"), reason: "starting again" };
      if (alive) return { vmm: run, keep: null, next: effect("boot"), reason: "continuing the start" };
      return { vmm: "none", keep: null, next: effect("boot"), reason: "starting again" };
    case "suspending":
      return planSuspending(record, found);
    case "restarting":
      return { vmm: end, keep: snapshot, next: effect("back_off"), reason: "waiting for the next start" };
    case "stopping":
      return { vmm: alive ? run : "none", keep: null, next: effect("halt"), reason: "continuing the stop" };
    case "updating":
      return { vmm: alive ? run : "none", keep: null, next: effect("apply_update"), reason: "continuing the update" };
    case "destroying":
      return { vmm: end, keep: null, next: effect("remove"), reason: "continuing the destroy" };
  }
}

/**
 * A cancel removes the generation before the guest runs on. So a published generation whose guest is paused, or gone,
 * is the machine's last state, and one whose guest runs is stale.
 */
function planSuspending(record: MachineRecord, { vmm, failure, published, captured }: FoundOnHost): Plan {
  const { capturing } = record;
  const whole = capturing !== null && published.includes(capturing);
  if (whole && vmm !== "running") {
    const reason = "the snapshot was whole";
    const outcome = { type: "captured", snapshot: captured, details: { reason } } as const;
    return { vmm: vmm === "none" ? "none" : "kill", keep: capturing, next: { kind: "outcome", outcome }, reason };
  }
  if (vmm === "none") return { vmm, keep: null, ...lost(record, failure ?? "the VMM ended during a suspend") };
  const reason = "the platform ended during the suspend";
  const outcome: EffectOutcome = { type: "capture_cancelled", reason };
  return { vmm: vmm === "paused" ? "wake" : "adopt", keep: null, next: { kind: "outcome", outcome }, reason };
}

function lost({ notSuspended }: MachineRecord, what: string): Pick<Plan, "next" | "reason"> {
  const reason = notSuspended?.by === "drain" ? `${what}; a drain had left it running: ${notSuspended.reason}` : what;
  return { next: { kind: "outcome", outcome: { type: "lost", reason, unwatched: true } }, reason };
}
