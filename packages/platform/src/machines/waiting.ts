/** Waiting for a state: settles when it was reached, even if only for a moment. */
import { HibernautError } from "../domain/errors.ts";
import type { MachineController } from "./controller.ts";
import type { WaitTarget } from "./service.ts";
import { isResting, type MachineState } from "../domain/machine.ts";

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
}

/** Whether being in `state` is what was waited for. */
export function reached(state: MachineState, targets: readonly WaitTarget[]): boolean {
  return targets.some((target) => (target === "settled" ? isResting(state) : target === state));
}

/** See {@link import("./service.ts").MachineService.wait}. */
export function waitFor(
  controller: MachineController,
  targets: readonly WaitTarget[],
  { timeoutMs, signal }: WaitOptions,
): Promise<MachineState> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      unsubscribe();
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      settle();
    };
    const look = (state: MachineState) => {
      if (reached(state, targets)) end(() => resolve(state));
      else if (state === "destroyed") end(() => reject(destroyed(controller.record.id, targets)));
    };
    const abort = () => end(() => reject(signal?.reason as Error));
    const unsubscribe = controller.subscribe((record) => look(record.state));
    const timer = setTimeout(() => end(() => reject(tooLate(targets, controller.record.state))), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    else look(controller.record.state);
  });
}

function tooLate(targets: readonly WaitTarget[], state: MachineState): HibernautError {
  const message = `machine failed to reach desired state, ${targets.join(" or ")}, currently ${state}`;
  return new HibernautError("deadline_exceeded", message, { desired: targets, state });
}

function destroyed(id: string, targets: readonly WaitTarget[]): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `Machine ${id} was destroyed and will never be ${targets.join(" or ")}.`,
    { machine_id: id },
  );
}
