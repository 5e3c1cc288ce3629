/** Shares the event loop among those who each have much to do. */
import { setImmediate } from "node:timers/promises";
import pLimit from "p-limit";

/** Returns a function that waits for the caller's turn: one caller in each round of the event loop. Never rejects. */
export function turns(): () => Promise<void> {
  const oneAtATime = pLimit(1);
  return () => oneAtATime(() => setImmediate());
}
