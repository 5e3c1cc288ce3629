/** Keeps what a page has read from becoming old while someone looks at it. */
import { useEffect, useRef } from "preact/hooks";
import { useServices } from "./context.ts";
import { TOPIC } from "./store.ts";

/** What no event tells is read this often, in milliseconds. */
const EVERY_MS = 60_000;
/** After changes, it is read at most this often, in milliseconds: on a busy platform, something always changes. */
const CHANGED_MS = 15_000;
/** How often a page looks whether it is time, in milliseconds. */
const LOOK_MS = 1_000;

/** What is known about a reading. Times are in milliseconds, of the same clock. */
interface Age {
  readAt: number;
  /** Whether something has changed since. */
  hasChanged: boolean;
  now: number;
}

/** Whether it is time to read again. Pure. */
export function isDue({ readAt, hasChanged, now }: Age): boolean {
  return now - readAt >= (hasChanged ? CHANGED_MS : EVERY_MS);
}

/**
 * Calls `reload` every minute, soon after a change of the topic, and once the platform is there again. Not while the page
 * is hidden or the platform is away: then as soon as that is over.
 */
export function useFresh(reload: () => void, topic?: string): void {
  const { store } = useServices();
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const { topics } = store;
    const version = () => (topic === undefined ? 0 : topics.version(topic));
    let read = { at: performance.now(), version: version() };
    let wasLost = false;
    const look = () => {
      if (store.link.state !== "live") {
        wasLost ||= store.link.state === "lost";
        return;
      }
      const now = performance.now();
      if (document.hidden || !(wasLost || isDue({ readAt: read.at, hasChanged: version() !== read.version, now })))
        return;
      wasLost = false;
      read = { at: now, version: version() };
      latest.current();
    };
    const timer = setInterval(look, LOOK_MS);
    const stopListening = topics.listen(TOPIC.link, look);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      stopListening();
      document.removeEventListener("visibilitychange", look);
    };
  }, [store, topic]);
}
