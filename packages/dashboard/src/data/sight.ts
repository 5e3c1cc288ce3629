/** Whether someone can see the page. */

/** A look at another window costs no connection: a page that is hidden for less stays connected, in milliseconds. */
export const HIDDEN_MS = 10_000;

/** A document, as far as it says whether it can be seen. */
export interface Sight extends EventTarget {
  readonly hidden: boolean;
}

/** Calls back whenever a page has been hidden for {@link HIDDEN_MS}, until the signal aborts. */
export function whenHidden(page: Sight, callback: () => void, signal: AbortSignal): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (page.hidden) timer = setTimeout(callback, HIDDEN_MS);
  };
  page.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  look();
}

/** Resolves as soon as a page can be seen, or when the signal aborts. */
export function untilSeen(page: Sight, signal: AbortSignal): Promise<void> {
  if (!page.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const seen = new AbortController();
    const look = () => {
      if (page.hidden && !signal.aborted) return;
      seen.abort();
      resolve();
    };
    page.addEventListener("visibilitychange", look, { signal: seen.signal });
    signal.addEventListener("abort", look, { signal: seen.signal });
  });
}
