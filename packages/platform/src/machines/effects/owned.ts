/** The last look before a guest's CPUs run: what a start waited for may have taken long. */
import { HibernautError } from "../../domain/errors.ts";
import type { EffectPorts } from "./ports.ts";

/** The machine is not this host's to start, or not any more. Its snapshot is as it was. */
export class NotOwned extends HibernautError {
  override name = "NotOwned";
}

/** Throws {@link NotOwned} when the host may not start the machine, by what it knows already. */
export function requireOwned(machineId: string, { ownership }: Pick<EffectPorts, "ownership">): void {
  const refusal = ownership?.refusal(machineId);
  if (refusal !== undefined) throw new NotOwned("unavailable", refusal.message, refusal.details);
}
