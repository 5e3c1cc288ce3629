/** When a delivery is tried again, and when no more. Pure. */

/** How an attempt ended. */
export type Attempt =
  | { status: number /** What the receiver asked for, as it wrote it. */; retryAfter: string | undefined }
  | { failure: "timeout" | "unreachable" | "blocked" | "unsigned"; reason: string };

/** Labels of the metric, and what follows: only `delivered` ends a delivery, and `gone` the webhook at once. */
export const OUTCOMES = ["delivered", "refused", "gone", "timeout", "unreachable", "blocked", "unsigned"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * Seconds from a failed attempt to the next. The first ones bridge a restart of the receiver, the last a day off: the sum
 * is 25 hours and 42 minutes, so a receiver that is back after a day has missed nothing.
 */
export const RETRY_S = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 36_000] as const;
/** Each wait is up to a tenth longer, so that receivers are not asked by everyone at once. */
const JITTER = 0.1;
/** The longest wait that a receiver can ask for: more would hide a receiver that never comes back. */
const MAX_RETRY_AFTER_MS = 36_000_000;
/** The receiver says that nobody is to send it anything any more. */
const GONE = 410;

/** Names how an attempt ended. */
export function outcomeOf(attempt: Attempt): Outcome {
  if ("failure" in attempt) return attempt.failure;
  if (attempt.status >= 200 && attempt.status < 300) return "delivered";
  return attempt.status === GONE ? "gone" : "refused";
}

/** Says why an attempt failed, as a sentence; null if it did not. */
export function failureText(attempt: Attempt): string | null {
  if ("failure" in attempt) return attempt.reason;
  const { status } = attempt;
  if (status >= 200 && status < 300) return null;
  if (status === GONE) return "The receiver answered 410 Gone: it wants no more events.";
  if (status >= 300 && status < 400)
    return `The receiver answered ${status}, a redirect, which webhooks do not follow. Change the webhook's URL.`;
  return `The receiver answered ${status}. Only 2xx says that it has the event.`;
}

/**
 * Milliseconds from a failed attempt to the next one; undefined if it was the last.
 *
 * @param attempts Attempts that failed, this one included.
 * @param random From 0 to 1.
 */
export function waitAfter(
  attempts: number,
  attempt: Attempt,
  { now, random }: { now: number; random: number },
): number | undefined {
  const seconds = RETRY_S[attempts - 1];
  if (seconds === undefined) return undefined;
  const ours = seconds * 1000 * (1 + JITTER * random);
  const theirs = "failure" in attempt ? 0 : (retryAfterMs(attempt.retryAfter, now) ?? 0);
  return Math.round(Math.max(ours, Math.min(theirs, MAX_RETRY_AFTER_MS)));
}

/** `Retry-After` in milliseconds from now: seconds or a date (RFC 9110 10.2.3). Undefined for anything else. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,10}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
