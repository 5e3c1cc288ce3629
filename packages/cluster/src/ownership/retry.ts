/** Work on the cluster's directory that must be done, however long the directory is out of reach. */
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@hibernaut/lib/text";
import type { Logger } from "@hibernaut/machines";

/** Waits between two tries, in milliseconds: the first, and the longest, which is how late a host can be after an outage. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;

export type Log = Pick<Logger, "info" | "warn">;
export type WarnLog = Pick<Logger, "warn">;

/** Repeats `work` until it resolves, or the signal is aborted. The log says once that it has to wait, and why. Never rejects. */
export async function untilDone(
  work: () => Promise<void>,
  { what, log, signal }: { what: string; log: WarnLog; signal: AbortSignal },
): Promise<void> {
  for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) return;
      if (wait === FIRST_WAIT_MS) log.warn({ reason: messageOf(error) }, `${what} has to wait`);
      await delay(wait, undefined, { signal, ref: false }).catch(() => {});
    }
  }
}
