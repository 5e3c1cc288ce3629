/** How long a registry may take, and how often it is asked again. */
import { setTimeout as delay } from "node:timers/promises";
import { isTransient } from "./fault.ts";

/** Times in milliseconds. Tests make them short. */
export interface Patience {
  /** From a request to the head of its reply. */
  replyMs: number;
  /** To check a login, with all that it takes: a person waits for it. */
  loginMs: number;
  /** In every such stretch of a download ... */
  stallMs: number;
  /** ... at least so many bytes must come, or the connection counts as dead. */
  stallBytes: number;
  /** Failures in a row, without progress between them, that end a download. */
  tries: number;
  /** Before the second try; doubled with every further one. */
  firstDelayMs: number;
  /** The longest wait between two tries, whatever Retry-After says. */
  longestDelayMs: number;
}

/** 16 KiB in 30 s is a modem: nobody waits for an image at that speed. */
export const PATIENCE: Patience = {
  replyMs: 30_000,
  loginMs: 30_000,
  stallMs: 30_000,
  stallBytes: 16 * 1024,
  tries: 6,
  firstDelayMs: 500,
  longestDelayMs: 60_000,
};

/** Waits before the next try: what the registry asked for, else longer each time, a little at random. */
export async function pause(failures: number, error: unknown, patience: Patience, signal: AbortSignal): Promise<void> {
  const asked = isTransient(error) ? error.retryAfterMs : undefined;
  // Many platforms that were cut off together should not come back together.
  const ownMs = patience.firstDelayMs * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
  await delay(Math.min(asked ?? ownMs, patience.longestDelayMs), undefined, { signal });
}

/** Does it again while it fails with something transient, `tries` times in all. */
export async function retrying<T>(
  work: () => Promise<T>,
  patience: Patience,
  signal: AbortSignal,
  tries = patience.tries,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error) || failures >= tries || signal.aborted) throw error;
      await pause(failures, error, patience, signal);
    }
  }
}
