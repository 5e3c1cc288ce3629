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
  /** Running machines that come after others, because they use much of busy CPUs. */
  last: number;
  /** What the host's memory has left for starts, in bytes. Undefined when none is refused for lack of room. */
  roomBytes: number | undefined;
}

/** Returns a function that looks at it. */
export function workloadOf(
  controllers: Pick<ControllerSet, "all" | "admission" | "turns">,
  bootSlots: Semaphore,
): () => Workload {
  return () => {
    const { admission, turns } = controllers;
    const work = controllers.all().map((controller) => controller.work);
    return {
      operations: work.reduce((sum, { queued }) => sum + queued, 0),
      bootSlots: bootSlots.waiting,
      room: admission.waiting,
      unstored: work.filter(({ unstored }) => unstored).length,
      last: turns.last,
      roomBytes: admission.left(),
    };
  };
}
