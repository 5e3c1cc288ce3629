/**
 * Work that nobody waits for. A rejection that nobody handles ends a process of Node, and with it everything that
 * all apps share; so whatever fails here is reported and counted, and the rest continues.
 */

/** `background`: work that was handed over here. `rejection`: a promise that was forgotten, which is a mistake in the code. */
export const FAULT_KINDS = ["background", "rejection"] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  kind: FaultKind;
  /** What failed, as words that the code has: never a name, and never what a guest says. */
  what: string;
  error: unknown;
  /** How many more there were since the last report of this work. */
  omitted: number;
}

/** How often a fault of the same work is reported, in milliseconds. A guest may cause them as often as it likes. */
const REPORT_MS = 10_000;

const counts: Record<FaultKind, number> = { background: 0, rejection: 0 };
const reported = new Map<string, { at: number; omitted: number }>();
let tell: (fault: Fault) => void = ({ what, error }) => console.error(`${what} failed:`, error);

/** How many faults there have been in this process. */
export function faultCounts(): Readonly<Record<FaultKind, number>> {
  return counts;
}

/** Lets the process report faults in its own way. */
export function onFault(listener: (fault: Fault) => void): void {
  tell = listener;
}

/** Lets the work continue without anyone who waits for it. `what` names it, as in "watching for the end of QEMU". */
export function background(work: Promise<unknown> | undefined, what: string): void {
  work?.catch((error: unknown) => reportFault("background", what, error));
}

/** Counts a fault, and reports it unless one of the same work was reported a moment ago. */
export function reportFault(kind: FaultKind, what: string, error: unknown): void {
  counts[kind] += 1;
  const now = performance.now();
  const last = reported.get(what);
  if (last !== undefined && now - last.at < REPORT_MS) {
    last.omitted += 1;
    return;
  }
  reported.set(what, { at: now, omitted: 0 });
  tell({ kind, what, error, omitted: last?.omitted ?? 0 });
}
