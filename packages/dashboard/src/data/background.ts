/** Work that nobody waits for. What fails is for the browser's console, and the page keeps running. */
export function background(work: Promise<unknown>, what: string): void {
  work.catch((error: unknown) => console.error(`${what} failed:`, error));
}

/** Resolves after this time, or when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
