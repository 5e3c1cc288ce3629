/** What a machine did over time, as a chart shows it. Pure. Times are milliseconds since 1970. */
import type { BootKind, MachineState } from "./machine.ts";

/** What a chart tells apart. `warm` is asleep with the paused VMM in memory. */
export const SPAN_STATES = ["running", "warm", "suspended", "stopped", "failed"] as const;
export type SpanState = (typeof SPAN_STATES)[number];
/** What is stored: whether a sleeping machine is warm is known apart from its state. */
export type StoredState = Exclude<SpanState, "warm">;

/** Changes of a machine that are kept, and as many wakes: a week of one that sleeps and wakes every ten minutes. */
export const KEPT_CHANGES = 2_000;

/** A change of what a machine does. */
export interface StateChange {
  at: number;
  /** What it was until then. */
  before: StoredState;
  state: StoredState;
}

/** A stretch of time. */
export interface Interval {
  from: number;
  until: number;
}

/** A stretch of time in one state. */
export interface Span extends Interval {
  state: SpanState;
}

/** A start that was completed. */
export interface Wake {
  at: number;
  kind: BootKind;
  /** Why it was this kind: a stable word and, after a colon, details. */
  reason: string;
  durationMs: number;
}

/**
 * What a machine that is now in `state` does; null once it is destroyed. A start counts as running from the moment it is
 * stored, and every other passing state as what the machine was before.
 */
export function storedStateOf(state: MachineState, before: StoredState): StoredState | null {
  switch (state) {
    case "running":
    case "starting":
      return "running";
    case "suspended":
    case "failed":
      return state;
    case "created":
    case "stopped":
    case "restarting":
      return "stopped";
    case "suspending":
    case "stopping":
    case "updating":
    case "destroying":
      return before;
    case "destroyed":
      return null;
  }
}

/** What a machine did before a passing state, where its last change is no longer kept. */
export function likelyBefore(state: MachineState | null): StoredState {
  return state === "suspending" || state === "stopping" ? "running" : "stopped";
}

/** What is known about a machine, for {@link spansOf}. */
interface Known {
  /** In order. Only those after the beginning matter. */
  changes: readonly StateChange[];
  /** When it was warm, in order, if it slept then. */
  warm: readonly Interval[];
  /** What it does now. Without any change, it always did. */
  now: StoredState;
}

/** Returns what a machine did in a stretch of time: spans in order, each beginning where the one before ends. */
export function spansOf({ changes, warm, now }: Known, { from, until }: Interval): Span[] {
  const spans: Span[] = [];
  let at = from;
  const first = changes.findIndex((change) => change.at > from);
  let state = changes[first]?.before ?? now;
  // The clock may have been set back: a chart goes one way anyway.
  for (const change of first === -1 ? [] : changes.slice(first)) {
    const end = Math.min(Math.max(change.at, at), until);
    spans.push({ state, from: at, until: end });
    at = end;
    ({ state } = change);
  }
  spans.push({ state, from: at, until });
  return joined(withWarm(spans, warm));
}

/** The same, where each sleep is divided into what of it was warm, and what was not. Both are in order. */
function withWarm(spans: readonly Span[], warm: readonly Interval[]): Span[] {
  const result: Span[] = [];
  let next = 0;
  for (const span of spans) {
    const { state, until } = span;
    if (state !== "suspended") {
      result.push(span);
      continue;
    }
    let at = span.from;
    while (at < until) {
      while ((warm[next]?.until ?? Infinity) <= at) next += 1;
      const interval = warm[next];
      const begin = Math.min(interval?.from ?? until, until);
      if (begin > at) result.push({ state, from: at, until: begin });
      at = Math.max(at, begin);
      const end = Math.min(interval?.until ?? until, until);
      if (end > at) result.push({ state: "warm", from: at, until: end });
      at = Math.max(at, end);
    }
  }
  return result;
}

/** Without empty spans, and with neighbours in the same state as one. */
function joined(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of spans) {
    const last = result.at(-1);
    if (span.until <= span.from) continue;
    if (last?.state === span.state) last.until = span.until;
    else result.push({ ...span });
  }
  return result;
}

/**
 * Returns at most `most` spans that cover the same time. Where there are more, those that are too short to be seen are
 * shown together, as what took up most of their time.
 */
export function coarser(spans: readonly Span[], most: number): readonly Span[] {
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined || spans.length <= most) return spans;
  const least = (last.until - first.from) / most;
  const groups: Span[][] = [];
  let group: Span[] = [];
  for (const span of spans) {
    group.push(span);
    if (span.until - (group[0]?.from ?? 0) < least) continue;
    groups.push(group);
    group = [];
  }
  // What is left is shorter than the least, so it belongs to its neighbour.
  groups.at(-1)?.push(...group);
  return joined(groups.map(together));
}

function together(group: readonly Span[]): Span {
  const shares = new Map<SpanState, number>();
  for (const { state, from, until } of group) shares.set(state, (shares.get(state) ?? 0) + until - from);
  const [[state] = ["stopped" as const]] = [...shares].toSorted((one, other) => other[1] - one[1]);
  return { state, from: group[0]?.from ?? 0, until: group.at(-1)?.until ?? 0 };
}

/** How often machines woke in a stretch of time, and how long that took. */
export interface WakeSummary {
  count: number;
  p50Ms: number;
  p99Ms: number;
}

/** Returns the median and the 99th percentile of durations, by nearest rank. Undefined without any. */
export function summaryOf(durationsMs: readonly number[]): WakeSummary | undefined {
  const sorted = durationsMs.toSorted((one, other) => one - other);
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return sorted.length === 0 ? undefined : { count: sorted.length, p50Ms: rank(0.5), p99Ms: rank(0.99) };
}
