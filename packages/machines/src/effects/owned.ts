/** The last look before a guest's CPUs run, and the first one after: what a start waited for may have taken long. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { EffectPorts } from "./ports.ts";

/** The machine is not this host's to start, or not any more. Its snapshot is as it was. */
export class NotOwned extends HibernautError {
  override name = "NotOwned";
}

/** Rejects with {@link NotOwned} when the host may not start the machine. Asks the directory if what is known is too old. */
export async function requireOwned(
  machineId: string,
  { ownership }: Pick<EffectPorts, "ownership">,
  signal: AbortSignal,
): Promise<void> {
  const refusal = await ownership?.verify(machineId, signal);
  if (refusal !== undefined) throw new NotOwned("unavailable", refusal.message, refusal.details);
}
