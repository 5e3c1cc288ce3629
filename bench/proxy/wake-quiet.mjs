/** Waits until the host does nothing else, because a disturbance can take longer than a wake. */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** After a suspend, the disk and other processes need about this long to finish its work. */
const WINDOW_MS = 300;
/** The share of all CPUs that may be busy. */
const QUIET = 0.05;

function used() {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, time) => sum + time.idle, 0);
  return { idle, all: times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq + time.idle, 0) };
}

/**
 * Resolves after a quiet moment, or after `patienceMs` without one. Returns how busy the CPUs were just before, from 0
 * to 1.
 *
 * @param {number} patienceMs
 */
export async function quietMoment(patienceMs) {
  for (const end = performance.now() + patienceMs; ; ) {
    const before = used();
    await delay(WINDOW_MS);
    const after = used();
    const busy = 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
    if (busy <= QUIET || performance.now() > end) return Math.max(0, busy);
  }
}
