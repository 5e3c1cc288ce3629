/** What a machine did in the last hours: spans of states, and its wakes. Pure. */
import type { Machine, MachineState, MachineTimeline, StreamEvent } from "@hibernaut/client/browser";

/** The states that the sleep chart tells apart. */
export type SpanState = MachineTimeline["spans"][number]["state"];

/** How a machine was started. */
export type WakeKind = MachineTimeline["wakes"][number]["kind"];

export const WAKE_KINDS: readonly WakeKind[] = ["warm", "resume", "cold"];

/** A time in one state. Times are milliseconds since 1970. */
export interface Span {
  state: SpanState;
  from: number;
  /** Undefined while it lasts. */
  until: number | undefined;
}

/** A start of a machine that slept. */
export interface Wake {
  at: number;
  kind: WakeKind;
  reason: string;
  /** Milliseconds. */
  took: number;
}

/** The history of one machine, oldest first. Spans neither overlap nor leave a gap. */
export interface Track {
  spans: readonly Span[];
  wakes: readonly Wake[];
  /** Wakes that the platform had and did not send, because there were too many. */
  wakesLeftOut: number;
}

/** Kept of one machine: more than a strip has pixels for. Short spans are merged beyond it. */
export const MOST_SPANS = 400;
/** Kept of one machine. The oldest are counted only. */
export const MOST_WAKES = 400;

/** States that a track shows as another one. */
const PASSING: ReadonlySet<MachineState> = new Set([
  "starting",
  "suspending",
  "stopping",
  "updating",
  "restarting",
  "destroying",
]);

export const EMPTY_TRACK: Track = { spans: [], wakes: [], wakesLeftOut: 0 };

/** Reads what the platform sent at `until`. The last span lasts. */
export function trackOf({ spans, wakes, wakes_left_out: leftOut }: MachineTimeline): Track {
  const last = spans.length - 1;
  return {
    spans: spans.map(({ state, from, until }, index) => ({
      state,
      from: Date.parse(from),
      until: index === last ? undefined : Date.parse(until),
    })),
    wakes: wakes.map(({ at, kind, reason, duration_ms: took }) => ({ at: Date.parse(at), kind, reason, took })),
    wakesLeftOut: leftOut,
  };
}

/** Adds what an event of the machine says. */
export function trackAfter(track: Track, event: StreamEvent): Track {
  const at = Date.parse(event.at);
  const { to, start } = event.data;
  const last = track.spans.at(-1);
  // It was in what the platform sent.
  if (last !== undefined && at < last.from) return track;
  const state = typeof to === "string" ? spanState(to, last?.state) : last?.state;
  const next = state === undefined ? track : inState(track, state, at);
  const wake = wakeOf(start, at);
  return wake === undefined ? next : withWake(next, wake);
}

/** Until when a machine is warm, in milliseconds since 1970. Undefined when it is not. */
export function warmUntil({ state, snapshot }: Pick<Machine, "state" | "snapshot">): number | undefined {
  const until = state === "suspended" ? snapshot?.warm_until : undefined;
  return until === undefined || until === null ? undefined : Date.parse(until);
}

/**
 * Takes over whether the machine's virtual machine is kept in memory, which no event says.
 *
 * @param before the machine as it was read last: until when it was to be warm
 */
export function trackWith(track: Track, machine: Machine, now: number, before?: Machine): Track {
  if (machine.state !== "suspended") return track;
  const last = track.spans.at(-1);
  const warm = warmUntil(machine) !== undefined;
  const ended = Math.min(now, (before && warmUntil(before)) ?? now);
  if (last?.state === "suspended" && warm)
    return { ...track, spans: [...track.spans.slice(0, -1), { ...last, state: "warm" }] };
  if (last?.state === "warm" && !warm) return inState(track, "suspended", Math.max(ended, last.from));
  return track;
}

/**
 * Returns since when a machine has been in its state, in milliseconds since 1970, as far back as the track goes. Undefined
 * in a passing state, which counts as another one, and while track and state do not agree.
 */
export function inStateSince(
  { spans }: Track,
  { state, last_boot: boot }: Pick<Machine, "state" | "last_boot">,
): number | undefined {
  const last = spans.at(-1);
  if (last === undefined || PASSING.has(state)) return undefined;
  const shown = last.state === "warm" ? "suspended" : last.state;
  if (shown !== spanState(state, undefined)) return undefined;
  // A machine that is updated while it runs starts again, within one span.
  return state === "running" && boot !== null ? Math.max(last.from, Date.parse(boot.at)) : last.from;
}

/** Forgets what was before `from`. */
export function trackSince(track: Track, from: number): Track {
  const oldest = track.spans[0];
  if (oldest === undefined || (oldest.until ?? Infinity) > from) return track;
  return {
    ...track,
    spans: track.spans.filter(({ until }) => (until ?? Infinity) > from),
    wakes: track.wakes.filter(({ at }) => at >= from),
  };
}

/**
 * Which of the chart's states a machine's state belongs to. On the way to another one, it counts as what it was, like in
 * its usage; a start counts as running.
 */
function spanState(state: string, before: SpanState | undefined): SpanState {
  switch (state) {
    case "running":
    case "starting":
      return "running";
    case "suspended":
      return "suspended";
    case "failed":
      return "failed";
    case "suspending":
      return before ?? "running";
    case "stopping":
    case "updating":
    case "destroying":
      return before ?? "stopped";
    default:
      return "stopped";
  }
}

function inState(track: Track, state: SpanState, at: number): Track {
  const last = track.spans.at(-1);
  if (last?.state === state) return track;
  const before = last === undefined ? [] : [...track.spans.slice(0, -1), { ...last, until: at }];
  return { ...track, spans: bounded([...before, { state, from: at, until: undefined }]) };
}

function withWake(track: Track, wake: Wake): Track {
  if (track.wakes.some(({ at }) => at === wake.at)) return track;
  const wakes = [...track.wakes, wake];
  const over = Math.max(0, wakes.length - MOST_WAKES);
  return { ...track, wakes: wakes.slice(over), wakesLeftOut: track.wakesLeftOut + over };
}

/** Gives the time of the shortest spans to those before them, until few enough are left. */
export function bounded(spans: readonly Span[], most: number = MOST_SPANS): Span[] {
  if (spans.length <= most) return [...spans];
  const inner = spans.slice(1, -1).map(({ from, until = Infinity }, index) => ({
    index: index + 1,
    length: until - from,
  }));
  // More than needed, so that this does not happen with each event.
  const surplus = spans.length - Math.floor(most * 0.75);
  const short = new Set(
    inner
      .toSorted((a, b) => a.length - b.length)
      .slice(0, surplus)
      .map(({ index }) => index),
  );
  const kept: Span[] = [];
  for (const [index, span] of spans.entries()) {
    const last = kept.at(-1);
    if (last !== undefined && (short.has(index) || last.state === span.state))
      kept[kept.length - 1] = { ...last, until: span.until };
    else kept.push(span);
  }
  return kept;
}

function wakeOf(start: unknown, at: number): Wake | undefined {
  if (typeof start !== "object" || start === null) return undefined;
  const { kind, reason, duration_ms: took } = start as Record<string, unknown>;
  if (kind !== "warm" && kind !== "resume" && kind !== "cold") return undefined;
  return { at, kind, reason: typeof reason === "string" ? reason : "", took: typeof took === "number" ? took : 0 };
}
