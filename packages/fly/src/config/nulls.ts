/** What is not set, as Go's clients say it: null. Pure. */
import { Refusal } from "../failure.ts";

/** How deep a body may be: theirs are 9. Beyond some thousand, JSON cannot be written. */
const MOST_DEPTH = 32;

/** Takes what is null out of what a client sent, in place. Throws a {@link Refusal} if that is too deep. */
export function removeNulls(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > MOST_DEPTH) throw new Refusal(400, "invalid_argument: The body is nested too deeply.");
  if (Array.isArray(value)) return value.filter((item) => item !== null).map((item) => removeNulls(item, depth + 1));
  const holder = value as Record<string, unknown>;
  for (const [key, item] of Object.entries(holder)) {
    if (item === null) delete holder[key];
    else if (typeof item === "object") {
      const cleaned = removeNulls(item, depth + 1);
      if (cleaned !== item)
        Object.defineProperty(holder, key, { value: cleaned, enumerable: true, configurable: true, writable: true });
    }
  }
  return holder;
}

/** Whether it is deeper than a body may be. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth > MOST_DEPTH || Object.values(value).some((item) => isTooDeep(item, depth + 1));
}
