/** Tells the directories that have the same file open in this process when one of them writes. */

/** Who wants to know of writes, by the file's path. */
const listeners = new Map<string, Set<() => void>>();

/** Calls every listener of a file. */
export function tellNeighbors(file: string): void {
  for (const listener of listeners.get(file) ?? []) listener();
}

/** Resolves at the next write to the file in this process, after `milliseconds`, or when the signal is aborted. */
export function nextWrite(file: string, milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const of = listeners.get(file) ?? new Set();
    listeners.set(file, of);
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      of.delete(end);
      if (of.size === 0 && listeners.get(file) === of) listeners.delete(file);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    timer.unref();
    of.add(end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
