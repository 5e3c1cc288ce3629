/** Waiting until a machine rests. */
import { isResting } from "@hibernaut/domain/machine";
import { abortable } from "@hibernaut/lib/async";
import type { MachineController } from "../controller.ts";

/** Resolves when nothing is in progress on the machine, or it is gone. Rejects with the signal's reason. */
export async function settled(machine: MachineController, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = () => (isResting(machine.record.state) || machine.record.state === "destroyed") && resolve();
  const unsubscribe = machine.subscribe(look);
  try {
    look();
    await abortable(promise, signal);
  } finally {
    unsubscribe();
  }
}
