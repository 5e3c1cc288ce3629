/** When something that was read is to be read again. Pure. */

/** What no event tells is read this often, in milliseconds. */
const EVERY_MS = 60_000;
/** After changes, it is read at most this often, in milliseconds: on a busy platform, something always changes. */
const CHANGED_MS = 15_000;

/** What is known about a reading. Times are in milliseconds, of the same clock. */
interface Age {
  readAt: number;
  /** Whether something has changed since. */
  hasChanged: boolean;
  now: number;
}

/** Whether it is time to read again. */
export function isDue({ readAt, hasChanged, now }: Age): boolean {
  return now - readAt >= (hasChanged ? CHANGED_MS : EVERY_MS);
}
