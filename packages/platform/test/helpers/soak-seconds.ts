import { parseSeconds } from "@hibernaut/lib/quantities";

/** How many seconds a soak takes: what `HIBERNAUT_SOAK` says, such as `3m`, or an hour. */
export function soakSeconds(text: string = process.env["HIBERNAUT_SOAK"] ?? "1h"): number {
  const seconds = parseSeconds(text, "s");
  if (seconds === undefined || seconds <= 0)
    throw new Error(`HIBERNAUT_SOAK is "${text}", which is not a duration. Set it to one such as 3m or 1h.`);
  return seconds;
}
