/** How progress is shown: on standard error, because standard output is for the result. */
import { clearLine, redraw } from "./terminal.ts";

const BAR_WIDTH = 24;

/** Shows what is reported until it ends. */
export interface Display<T> {
  show(progress: T): void;
  end(): void;
}

/** With `--json`: every report as a line. */
export function jsonLines<T>(stream: NodeJS.WriteStream): Display<T> {
  return { show: (progress) => void stream.write(`${JSON.stringify(progress)}\n`), end: () => {} };
}

/** On a terminal: one line, which is drawn again for each report, and is gone in the end. */
export function oneLine<T>(text: (progress: T) => string, stream: NodeJS.WriteStream): Display<T> {
  return { show: (progress) => redraw(text(progress), stream), end: () => clearLine(stream) };
}

/** `[######------------------]` for a share between 0 and 1. */
export function gauge(share: number): string {
  const full = Math.round(share * BAR_WIDTH);
  return `[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}]`;
}

/** How much of the total is done: 1 if there is nothing to do. */
export function shareOf(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, done / total);
}
