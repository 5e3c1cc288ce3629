/** Waits for a moment in which the host does nothing else: a wake takes less time than what disturbs it. */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

/** After a side fell asleep, what it left to the disk and to other processes is over in this time. */
const WINDOW_MS = 300;
/** Of all CPUs. */
const QUIET = 0.05;

function used() {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, time) => sum + time.idle, 0);
  return { idle, all: times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq + time.idle, 0) };
}

/**
 * Settles after a quiet moment, or when there was none for `patienceMs`. Says how busy the CPUs were in the last one,
 * from 0 to 1.
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
