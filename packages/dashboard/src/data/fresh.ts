/** Keeps what a page has read from becoming old while someone looks at it. */
import { useEffect, useRef } from "preact/hooks";
import { useServices } from "./context.ts";
import { isDue } from "./due.ts";
import { TOPIC } from "./store.ts";

/** How often a page looks whether it is time, in milliseconds. */
const LOOK_MS = 1_000;

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
