/** Whose turn it is when the machines of a host want more CPU than it has. Pure. */
import type { CpuTurn } from "@hibernaut/hypervisor";

/** What a machine used of the CPUs lately: 1 is one CPU. */
export interface Use {
  use: number;
  turn: CpuTurn;
}

/** The part of a host's CPU time from which on its machines wait for each other. */
export const BUSY = 0.85;
/**
 * A machine comes last that uses more than this part of what the greediest one does, and first again below the lower one. The
 * gap keeps machines from changing back and forth: what is between them stays as it is.
 */
const LAST_ABOVE = 0.5;
const FIRST_BELOW = 0.25;
/** Nobody waits long for one that uses less of a CPU. */
const LEAST_TO_COME_LAST = 0.1;

/**
 * Returns the turns of machines that compete for the CPUs, in their order. A kernel that shares time evenly lets one that
 * only wants a moment wait until the turns of others end, and an answer takes many moments. So those that use little come
 * before those that use much, which share the rest: that is nearly all, since the others use little.
 */
export function turnsOf(machines: readonly Use[]): CpuTurn[] {
  const most = Math.max(0, ...machines.map(({ use }) => use));
  const limit = Math.max(LEAST_TO_COME_LAST, LAST_ABOVE * most);
  const turns = machines.map(({ use, turn }): CpuTurn => {
    if (use > limit) return "last";
    return turn === "last" && use >= FIRST_BELOW * most && use >= LEAST_TO_COME_LAST ? "last" : "first";
  });
  // There is nobody to come before.
  return turns.includes("first") && turns.includes("last") ? turns : turns.map(() => "usual");
}
