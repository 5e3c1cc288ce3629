/** How long a registry may take, and how often a request is repeated. */
import { setTimeout as delay } from "node:timers/promises";
import { isTransient } from "./fault.ts";

/** Times in milliseconds. Tests make them short. */
export interface Patience {
  /** From a request to the head of its reply. */
  replyMs: number;
  /** To check a login, with all requests. Short, because a person is waiting. */
  loginMs: number;
  /** A download must bring at least `stallBytes` in each period of this length, or its connection counts as dead. */
  stallMs: number;
  stallBytes: number;
  /** Failures in a row, without progress in between, after which a download fails. */
  tries: number;
  /** Wait before the second attempt. Doubles with each further attempt. */
  firstDelayMs: number;
  /** The longest wait between two attempts, even if Retry-After asks for more. */
  longestDelayMs: number;
}

/** The defaults. 16 KiB in 30 s is the speed of a modem, too slow for an image. */
export const PATIENCE: Patience = {
  replyMs: 30_000,
  loginMs: 30_000,
  stallMs: 30_000,
  stallBytes: 16 * 1024,
  tries: 6,
  firstDelayMs: 500,
  longestDelayMs: 60_000,
};

/** Waits before the next attempt: for as long as the registry asked, otherwise longer each time, plus a random part. */
export async function pause(failures: number, error: unknown, patience: Patience, signal: AbortSignal): Promise<void> {
  const asked = isTransient(error) ? error.retryAfterMs : undefined;
  // Random, so that many platforms that lost the registry together do not all return together.
  const backoffMs = patience.firstDelayMs * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
  await delay(Math.min(asked ?? backoffMs, patience.longestDelayMs), undefined, { signal });
}

/** Runs `work`, and repeats it after transient faults, up to `tries` times in total. */
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
