/** Waits for a state. Settles when the machine has reached it, even if only for a moment. */
import { HibernautError } from "../domain/errors.ts";
import type { MachineChanges } from "./changes.ts";
import { isResting, type MachineRecord, type MachineState, type RestingState } from "../domain/machine.ts";

/** A state to wait for. `settled` is any resting state. */
export type WaitTarget = RestingState | "destroyed" | "settled";

/** How long to wait. */
export interface WaitOptions {
  timeoutMs: number;
  /** Ends the wait, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Returns whether `state` is one of the targets. */
export function reached(state: MachineState, targets: readonly WaitTarget[]): boolean {
  return targets.some((target) => (target === "settled" ? isResting(state) : target === state));
}

/** Returns the state that was reached. See {@link import("./resources/machines.ts").Machines.wait} for the errors. */
export function waitFor(
  machine: { readonly record: MachineRecord },
  changes: MachineChanges,
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
      else if (state === "destroyed") end(() => reject(destroyed(id, targets)));
    };
    const abort = () => end(() => reject(signal?.reason as Error));
    const { id } = machine.record;
    const unsubscribe = changes.subscribe("waiting", (record) => record.id === id && look(record.state));
    const timer = setTimeout(() => end(() => reject(tooLate(targets, machine.record.state))), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    else look(machine.record.state);
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
