/** Work that nobody waits for. What fails is for the browser's console, and the page keeps running. */
export function background(work: Promise<unknown>, what: string): void {
  work.catch((error: unknown) => console.error(`${what} failed:`, error));
}
