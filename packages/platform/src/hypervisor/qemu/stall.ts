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
 * Lets halted guests continue as soon as the disk takes their writes, until the signal is aborted. Calls `onStalled` with
 * the reason of a halt, and with undefined when it is over.
 */
export function endStalls(qmp: Qmp, signal: AbortSignal, onStalled: (reason: string | undefined) => void): void {
  let stalled = false;
  qmp.subscribe(({ event, data }) => {
    if (event !== "BLOCK_IO_ERROR" || data.action !== "stop" || stalled) return;
    stalled = true;
    onStalled(
      `the host's disk does not take the guest's writes (${String(data.reason ?? "no reason given")}); the guest continues when there is space`,
    );
    void untilRunning(qmp, signal)
      .catch(() => {}) // the VMM ended or was released: others notice that
      .finally(() => {
        stalled = false;
        if (!signal.aborted) onStalled(undefined);
      });
  });
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
