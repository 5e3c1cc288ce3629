/** What others may count and time about machines, and how an effect becomes a timed operation (pure). */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Operation, Steps } from "@hibernaut/domain/operation";
import type { EffectFailed, EffectOutcome, EffectWithOutcome } from "./decide/index.ts";

/** `refused`: the agent could not do something. `broken`: the platform ended the channel because of what the guest did. */
export const AGENT_FAULTS = ["refused", "broken"] as const;

/** Is told of what happens. None of it waits for that, and none of it may throw. */
export interface Watch {
  /** A start or a suspend is over, and everybody who waited for it knows. */
  operation(operation: Operation): void;
  agentFault(fault: (typeof AGENT_FAULTS)[number]): void;
}

/** Outcomes after which an operation did what it was to do. */
const DONE: ReadonlySet<string> = new Set(["started", "captured"]);

interface Ended {
  record: Pick<MachineRecord, "id" | "app">;
  effect: Pick<EffectWithOutcome, "type">;
  outcome: EffectOutcome | EffectFailed;
  /** False when something else took its place. */
  current: boolean;
  steps: Pick<Steps, "began" | "all">;
  /** On the clock of `performance.now()`. */
  ended: number;
}

/** Returns what an effect was, as far as it is timed: undefined unless it was a start or a suspend. */
export function operationOf({ record, effect, outcome, current, steps, ended }: Ended): Operation | undefined {
  if (effect.type !== "boot" && effect.type !== "capture") return undefined;
  const boot = "boot" in outcome ? outcome.boot?.lastBoot : undefined;
  return {
    type: effect.type === "boot" ? "start" : "suspend",
    machineId: record.id,
    app: record.app,
    outcome: verdict(outcome, current),
    kind: boot?.kind,
    reason: boot?.reason ?? ("reason" in outcome ? outcome.reason : undefined),
    began: steps.began,
    ended,
    steps: steps.all,
  };
}

function verdict({ type }: EffectOutcome | EffectFailed, current: boolean): Operation["outcome"] {
  if (!current || type === "capture_cancelled") return "cancelled";
  if (type === "app_ended") return "app_ended";
  return DONE.has(type) ? "ok" : "failed";
}
