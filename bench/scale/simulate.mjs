/**
 * What a cluster's hosts write to their directory while machines sleep and wake, drawn from a seed: when each machine wakes,
 * and what its host publishes then. Pure: the same numbers give the same result.
 */

/**
 * @typedef {object} Size
 * @property {number} hosts
 * @property {number} machinesPerHost
 * @property {number} wakesPerHour Of each machine. A wake ends with a sleep.
 * @property {number} seconds How long to simulate. Traffic is steady from the first second.
 */

/** What a machine does in one turn, in seconds, as measured here under emulation; a visit and the idle timeout are assumptions. */
const TURN = { resume: 0.25, visit: 5, idle: 60, suspend: 0.08 };
/** Hosts collect what they publish for this long, in seconds. */
const COLLECT_S = 0.1;
/** A host's own record is written at most this often, in seconds. */
const HOST_RECORD_S = 10;
/** Leases are renewed this often, in seconds. */
const RENEW_S = 3;

/**
 * Returns rates per second over the whole cluster: `changes` of keys, `writes` (transactions, each of one host), the busiest
 * second's `peakWrites`, `delivered` changes (every host watches everything) and `renewals` of leases.
 *
 * @param {Size} size
 * @param {number} [seed]
 */
export function simulate({ hosts, machinesPerHost, wakesPerHour, seconds }, seed = 1) {
  const random = generator(seed);
  const turnsPerSecond = (hosts * machinesPerHost * wakesPerHour) / 3600;
  const writes = new Uint32Array(seconds);
  /** The windows in which a host publishes anything: several changes in one are one transaction. */
  const windows = new Set();
  const recordWindows = new Set();
  let changes = 0;
  const publish = (/** @type {number} */ host, /** @type {number} */ at) => {
    if (at < 0 || at >= seconds) return;
    changes += 1;
    const window = host * 1e9 + Math.floor(at / COLLECT_S);
    if (windows.has(window)) return;
    windows.add(window);
    writes[Math.floor(at)] = (writes[Math.floor(at)] ?? 0) + 1;
  };
  // Turns that began before the first second end within it.
  const before = TURN.resume + 4 * TURN.visit + TURN.idle + TURN.suspend;
  for (let at = -before; at < seconds; at += exponential(random, 1 / turnsPerSecond)) {
    const host = Math.floor(random() * hosts);
    const running = at + TURN.resume;
    const quiet = running + exponential(random, TURN.visit);
    const suspending = quiet + TURN.idle;
    // Starting; running, with its first load; without load; suspending; suspended.
    for (const moment of [at, running, quiet, suspending, suspending + TURN.suspend]) publish(host, moment);
    // Its memory is promised, and free again.
    for (const moment of [at, suspending])
      if (moment >= 0 && moment < seconds) recordWindows.add(host * 1e9 + Math.floor(moment / HOST_RECORD_S));
  }
  const records = recordWindows.size / seconds;
  const perSecond = { changes: changes / seconds + records, writes: windows.size / seconds + records };
  return {
    ...perSecond,
    peakWrites: writes.reduce((most, count) => Math.max(most, count), 0) + records,
    delivered: perSecond.changes * hosts,
    renewals: hosts / RENEW_S,
  };
}

/** @param {() => number} random @param {number} mean */
function exponential(random, mean) {
  return -Math.log(1 - random()) * mean;
}

/**
 * Mulberry32: small, and good enough for arrivals.
 *
 * @param {number} seed
 */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
