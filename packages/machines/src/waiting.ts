/** Waits for a state. Settles when the machine has reached it, even if only for a moment. */
import type { CheckResult } from "@hibernaut/domain/check";
import { HibernautError } from "@hibernaut/domain/errors";
import { healthOf } from "@hibernaut/domain/health";
import { isResting, type MachineRecord, type MachineState, type RestingState } from "@hibernaut/domain/machine";
import { abortable } from "@hibernaut/lib/async";
import type { MachineChanges } from "./changes.ts";
import type { MachineController } from "./controller.ts";

/**
 * A state to wait for. `settled` is any resting state; {@link healthOf} defines `healthy` and `unhealthy`. `prewarmed`:
 * no prewarm is in progress any more, however it ended.
 */
export type WaitTarget = RestingState | "destroyed" | "settled" | "healthy" | "unhealthy" | "prewarmed";

/** What a wait found. */
export interface Waited {
  state: MachineState;
  /** Which of the targets was reached: the state alone does not tell whether a running machine is `healthy`. */
  reached: WaitTarget;
}

/** How long to wait. */
export interface WaitOptions {
  timeoutMs: number;
  /** Ends the wait, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** How long the destruction of a machine may take, in milliseconds: nothing in it is waited for, but the host may be busy. */
export const DESTROY_TIMEOUT_MS = 60_000;

/** Returns the first target that the machine has reached. */
function reachedOf(
  record: MachineRecord,
  checks: readonly CheckResult[],
  targets: readonly WaitTarget[],
): WaitTarget | undefined {
  const { state } = record;
  return targets.find((target) => {
    if (target === "settled") return isResting(state);
    if (target === "healthy" || target === "unhealthy") return healthOf(record, checks).status === target;
    if (target === "prewarmed") return record.prewarm?.status !== "pending";
    return target === state;
  });
}

/** The changes that a wait follows. */
interface WaitSources {
  changes: MachineChanges;
  checkResults?(machineId: string): CheckResult[];
  subscribeToChecks?(listener: (machineId: string) => void): () => void;
}

/** Returns what was reached. See {@link import("./resources/machines.ts").Machines.wait} for the errors. */
export function waitFor(
  machine: { readonly record: MachineRecord },
  { changes, checkResults, subscribeToChecks }: WaitSources,
  targets: readonly WaitTarget[],
  { timeoutMs, signal }: WaitOptions,
): Promise<Waited> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      unsubscribe();
      unsubscribeFromChecks?.();
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      settle();
    };
    const look = (record: MachineRecord) => {
      const { state } = record;
      const reached = reachedOf(record, checkResults?.(id) ?? [], targets);
      if (reached !== undefined) end(() => resolve({ state, reached }));
      else if (state === "destroyed")
        end(() => reject(record.movedTo === undefined ? destroyed(id, targets) : moved(id, record.movedTo)));
    };
    const abort = () => end(() => reject(signal?.reason as Error));
    const { id } = machine.record;
    const unsubscribe = changes.subscribe("waiting", (record) => record.id === id && look(record));
    const unsubscribeFromChecks = subscribeToChecks?.((checked) => checked === id && look(machine.record));
    const timer = setTimeout(() => end(() => reject(tooLate(targets, machine.record.state))), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    else look(machine.record);
  });
}

/** Resolves when nothing is in progress on the machine, or it is gone. Rejects with the signal's reason. */
export async function settled(
  machine: Pick<MachineController, "record" | "subscribe">,
  signal: AbortSignal,
): Promise<void> {
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

function tooLate(targets: readonly WaitTarget[], state: MachineState): HibernautError {
  const message = `machine failed to reach desired state, ${targets.join(" or ")}, currently ${state}`;
  return new HibernautError("deadline_exceeded", message, { desired: targets, state });
}

function moved(id: string, host: string): HibernautError {
  const message = `Machine ${id} moved to host ${host} meanwhile. Ask again: any host knows that.`;
  return new HibernautError("moved", message, { machine_id: id, host });
}

function destroyed(id: string, targets: readonly WaitTarget[]): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `Machine ${id} was destroyed and will never be ${targets.join(" or ")}.`,
    { machine_id: id },
  );
}
