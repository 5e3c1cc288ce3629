/** The effects that end in an outcome. Each takes its input and ports and reports once; none of them sets a state. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { EffectOutcome, EffectWithOutcome } from "../decide/index.ts";
import { backOff } from "./back-off.ts";
import { boot } from "./boot.ts";
import { capture } from "./capture.ts";
import { applyUpdate, halt, remove } from "./halt.ts";
import type { EffectPorts } from "./ports.ts";

interface EffectInput {
  /** As it is when the effect begins. */
  record: MachineRecord;
  effect: EffectWithOutcome;
}

/** Carries out an effect. `signal` is aborted when it is cancelled or superseded. Rejects only for unforeseen reasons. */
export async function runEffect(
  { record, effect }: EffectInput,
  ports: EffectPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  switch (effect.type) {
    case "boot":
      return boot({ record, effect }, ports, signal);
    case "back_off":
      return backOff({ record, until: effect.until }, ports, signal);
    case "capture":
      return capture({ record, generation: effect.generation }, ports, signal);
    case "halt":
      return halt({ record, effect }, ports, signal);
    case "apply_update":
      return applyUpdate({ record }, ports, signal);
    case "remove":
      return remove({ record }, ports, signal);
  }
}
