/** What machines are waiting for at the moment, for metrics. */
import type { Semaphore } from "@hibernaut/lib/semaphore";
import type { ControllerSet } from "./controller-set.ts";

export interface Workload {
  /** Operations of machines that are in progress, or wait for the one before. */
  operations: number;
  /** Cold starts that wait for their turn to boot. */
  bootSlots: number;
  /** Starts that wait for room in the host's memory. */
  room: number;
  /** Machines about which something happened that cannot be stored. */
  unstored: number;
  /** What the host's memory has left for starts, in bytes. Undefined when none is refused for lack of room. */
  roomBytes: number | undefined;
}

/** Returns a function that looks at it. */
export function workloadOf(
  controllers: Pick<ControllerSet, "all" | "admission">,
  bootSlots: Semaphore,
): () => Workload {
  return () => {
    let [operations, unstored] = [0, 0];
    for (const { work } of controllers.all()) {
      operations += work.queued;
      unstored += work.unstored ? 1 : 0;
    }
    const { admission } = controllers;
    return {
      ...{ operations, unstored, bootSlots: bootSlots.waiting },
      ...{ room: admission.waiting, roomBytes: admission.left() },
    };
  };
}
