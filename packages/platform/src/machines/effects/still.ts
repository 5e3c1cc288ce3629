/** Holding a guest still for a moment, without ending it. */
import type { GuestAgent } from "../../guest/agent.ts";
import { messageOf } from "../../lib/text.ts";
import { type EffectContext, within } from "./context.ts";

/** For the disks to be flushed; the agent lets the app go on by itself 10 s after that. */
const QUIESCE_TIMEOUT_MS = 5_000;
const WAKE_TIMEOUT_MS = 10_000;
/** Less than the agent's patience: after that the app may have gone on beneath the work. */
const LONGEST_MS = 8_000;

/** The app stands still, and nothing changes on the disks, while `work` goes on. */
export async function standStill(
  { deps, record, signal }: EffectContext,
  agent: GuestAgent,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await agent.quiesce(within(signal, QUIESCE_TIMEOUT_MS, "flushing the guest's disks"));
    const began = performance.now();
    await work();
    if (performance.now() - began > LONGEST_MS) throw new Error(`it took longer than ${LONGEST_MS} ms`);
  } finally {
    // A guest that is slow to answer is not lost: it goes on by itself after a while.
    await agent.awake(within(new AbortController().signal, WAKE_TIMEOUT_MS, "waking the guest")).catch((error) => {
      deps.log.warn({ machine: record.id, reason: messageOf(error) }, "the guest does not answer after it stood still");
    });
  }
}
