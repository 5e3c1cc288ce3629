/** Work that must not be given up because the host is busy. */
import { setTimeout as delay } from "node:timers/promises";
import { isPassing } from "./absence.ts";

/** Between two attempts, in milliseconds: descriptors come back as connections end. */
const PAUSE_MS = 250;

/**
 * Does the work, and again while the host hinders it for a reason that passes, for this many milliseconds. Rejects with the
 * error of the last attempt.
 */
export async function insist<T>(work: () => Promise<T>, forMs: number): Promise<T> {
  const end = performance.now() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error) || performance.now() > end) throw error;
    }
    await delay(PAUSE_MS);
  }
}
