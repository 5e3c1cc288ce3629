/** Who comes last when the machines of a host want more CPU than it has. Pure. */

/** What a machine used lately, as a part of its own CPUs: one with many cannot make others look modest. */
export interface Use {
  use: number;
  /** Whether others come before it. */
  last: boolean;
}

/** The part of a host's CPU time from which on its machines wait for each other. */
export const BUSY = 0.85;
/**
 * A machine comes last that uses more than this part of what the greediest one does, and no longer below the lower one. The gap
 * keeps machines from changing back and forth: what is between them stays as it is.
 */
const LAST_ABOVE = 0.5;
const NOT_BELOW = 0.25;
/** Nobody waits long for one that uses less of its CPUs. */
const LEAST = 0.1;

/**
 * Returns for each machine whether it comes last. A kernel that shares time evenly lets one that only wants a moment wait
 * until the turns of others end, and an answer takes many moments. So those that use little come before those that use much,
 * which share the rest: that is nearly all, since the others use little. Nobody comes before what it would be without
 * this: a machine cannot gain by what others of its owner do.
 */
export function whoComesLast(machines: readonly Use[]): boolean[] {
  const most = Math.max(0, ...machines.map(({ use }) => use));
  const lasts = machines.map(({ use, last }) => use > Math.max(LEAST, (last ? NOT_BELOW : LAST_ABOVE) * most));
  // There is nobody to come before.
  return lasts.includes(false) ? lasts : lasts.map(() => false);
}
