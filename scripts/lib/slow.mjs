/** How many times slower than usual this host is: the platform's setting of the same name, for the scripts around it. */
const SLOW_FACTOR = Number(process.env.HIBERNAUT_SLOW_FACTOR) || 1;
/** The API lets nobody wait longer for a machine, in seconds. */
const LONGEST_WAIT_S = 300;

/** How long to wait, in any unit, for what would take `usual` at most on a usual host. @param {number} usual */
export const slowed = (usual) => usual * SLOW_FACTOR;

/** The same for one call of the API that waits for a machine. @param {number} seconds */
export const waitS = (seconds) => Math.min(slowed(seconds), LONGEST_WAIT_S);
