/**
 * Guests on a full disk. QEMU halts a guest when the host has no space for a write (its default, `werror=enospc`), and
 * nothing is lost. Letting the guest continue is up to us.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Qmp } from "./qmp.ts";

/** How long a guest stays halted after the disk has space again. An attempt costs one command. */
const RETRY_MS = 500;
/** QEMU retries the write at once. A guest that is halted again after this still has no space. */
const SETTLE_MS = 100;
/**
 * A guest that was halted before is told to run once it has done so for this long, for each time that it was halted, in
 * milliseconds. A disk with room now and then would have it told, and stored on that disk, without end.
 */
const STEADY_MS = 1_000;
const LONGEST_STEADY_MS = 10_000;

/**
 * Lets halted guests continue as soon as the disk takes their writes, until the signal is aborted. Calls `onStalled` with
 * the reason of a halt, and with undefined when it is over.
 */
export function endStalls(qmp: Qmp, signal: AbortSignal, onStalled: (reason: string | undefined) => void): void {
  let stalled = false;
  let halts = 0;
  qmp.subscribe(({ event, data }) => {
    if (event !== "BLOCK_IO_ERROR" || data.action !== "stop" || stalled) return;
    stalled = true;
    onStalled(
      `the host's disk does not take the guest's writes (${String(data.reason ?? "no reason given")}); the guest continues when there is space`,
    );
    const steadyMs = Math.min(halts * STEADY_MS, LONGEST_STEADY_MS);
    halts += 1;
    void untilSteady(qmp, steadyMs, signal)
      .catch(() => {}) // the VMM ended or was released: others notice that
      .finally(() => {
        stalled = false;
        if (!signal.aborted) onStalled(undefined);
      });
  });
}

/** Lets the guest continue, and again if it is halted, until it has not been for a while. */
async function untilSteady(qmp: Qmp, steadyMs: number, signal: AbortSignal): Promise<void> {
  await untilRunning(qmp, signal);
  let leftMs = steadyMs;
  while (leftMs > 0) {
    await delay(RETRY_MS, undefined, { signal, ref: false });
    leftMs -= RETRY_MS;
    if ((await status(qmp)) !== "io-error") continue;
    await untilRunning(qmp, signal);
    leftMs = steadyMs;
  }
}

async function untilRunning(qmp: Qmp, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(RETRY_MS, undefined, { signal, ref: false });
    // Paused for another reason, or running again: leave it as it is.
    if ((await status(qmp)) !== "io-error") return;
    await qmp.execute("cont");
    await delay(SETTLE_MS, undefined, { signal, ref: false });
    if ((await status(qmp)) === "running") return;
  }
}

async function status(qmp: Qmp): Promise<string> {
  return (await qmp.execute<{ status: string }>("query-status")).status;
}
