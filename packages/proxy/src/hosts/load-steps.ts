/** How coarsely hosts tell each other what is open on their machines: a pure rule. */

/** Each quarter of the soft limit is told. Finer steps would be told to all hosts at every request. */
const STEPS = 4;

/** Returns the size of a step, in the unit of the service. */
export function loadStep(softLimit: number): number {
  return Math.max(1, Math.floor(softLimit / STEPS));
}

/**
 * Returns what is told of a load: the last step that it has reached. At the soft limit, the soft limit itself, because
 * that is where machines are woken.
 */
export function coarseLoad(load: number, softLimit: number): number {
  if (load <= 0) return 0;
  const step = loadStep(softLimit);
  const reached = Math.floor(load / step) * step;
  return load >= softLimit ? Math.max(reached, softLimit) : Math.max(reached, 1);
}
