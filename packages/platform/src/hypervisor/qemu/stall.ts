/**
 * Guests whose disk is full. QEMU halts a guest whose write finds no room on the host (its default,
 * `werror=enospc`), with nothing lost; going on is our part.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Qmp } from "./qmp.ts";

/** How soon a guest goes on after somebody made room; trying costs one command. */
const RETRY_MS = 500;
/** QEMU tries the write again at once; if it is halted still after this, there is no room yet. */
const SETTLE_MS = 100;

/** Watches for halts and ends them as soon as the disk takes the writes. Stops when the signal is aborted. */
export function keepGoing(qmp: Qmp, signal: AbortSignal, onStalled: (reason: string | undefined) => void): void {
  let stalled = false;
  qmp.subscribe(({ event, data }) => {
    if (event !== "BLOCK_IO_ERROR" || data.action !== "stop" || stalled) return;
    stalled = true;
    onStalled(
      `the host's disk does not take the guest's writes (${String(data.reason ?? "no reason given")}); it goes on when there is room`,
    );
    void goOn(qmp, signal)
      .catch(() => {}) // the VMM ended or was let go: others see that
      .finally(() => {
        stalled = false;
        if (!signal.aborted) onStalled(undefined);
      });
  });
}

async function goOn(qmp: Qmp, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(RETRY_MS, undefined, { signal, ref: false });
    // Paused for another reason, or running again: not ours to touch.
    if ((await status(qmp)) !== "io-error") return;
    await qmp.execute("cont");
    await delay(SETTLE_MS, undefined, { signal, ref: false });
    if ((await status(qmp)) === "running") return;
  }
}

async function status(qmp: Qmp): Promise<string> {
  return (await qmp.execute<{ status: string }>("query-status")).status;
}
