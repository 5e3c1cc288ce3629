/** Holding a guest still for a moment, without ending it. */
import { never, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { LiveGuest } from "../guest.ts";
import type { EffectPorts } from "./ports.ts";

/** For the disks to be flushed; the agent lets the app run on by itself 10 s after that. */
const FLUSH_TIMEOUT_MS = 5_000;
/** Less than the agent's patience: after that the app may have been running during the work. */
const LONGEST_MS = 8_000;

interface WhilePausedInput {
  machineId: string;
  agent: LiveGuest["agent"];
  work(): Promise<void>;
}

/** Does `work` while the app is paused and nothing changes on the disks. Rejects if that took too long to be sure. */
export async function whilePaused(
  { machineId, agent, work }: WhilePausedInput,
  { settings, log }: Pick<EffectPorts, "settings" | "log">,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  try {
    await agent.quiesce(within(signal, FLUSH_TIMEOUT_MS * settings.slowFactor, "flushing the guest's disks"));
    const began = performance.now();
    await work();
    if (performance.now() - began > LONGEST_MS) throw new Error(`it took longer than ${LONGEST_MS} ms`);
  } finally {
    // A guest that is slow to answer is not lost: it runs on by itself after a while.
    await agent.awake(within(never(), settings.wakeTimeoutMs, "waking the guest")).catch((error) => {
      log.warn({ machine: machineId, reason: messageOf(error) }, "the guest does not answer after it was held still");
    });
  }
}
