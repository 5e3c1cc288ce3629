/** Where the parts of a sleep chart's strip are. Pure. */
import type { Span, SpanState, Wake } from "../../data/track.ts";

/** Which time a strip shows, and in how many pixels. Times are milliseconds since 1970. */
export interface Area {
  from: number;
  until: number;
  width: number;
}

/** The height of a strip in pixels. */
export const STRIP_HEIGHT = 20;
/** How high each state is drawn, in pixels: what takes CPU and memory is tall. */
export const STATE_HEIGHT: Readonly<Record<SpanState, number>> = {
  running: 20,
  failed: 20,
  warm: 12,
  suspended: 7,
  stopped: 2,
};
/** A second of work in a day is less than a pixel, and should be seen. */
const LEAST_WIDTH = 1;

/** A piece of a strip, in pixels from the left. */
export interface Piece {
  state: SpanState;
  left: number;
  right: number;
}

/** Returns where a time is, in pixels, not beyond the edges. */
export function xOf(at: number, { from, until, width }: Area): number {
  const x = ((at - from) / Math.max(1, until - from)) * width;
  return Math.round(Math.min(width, Math.max(0, x)) * 10) / 10;
}

/** Returns the pieces of a strip. Pieces of one state do not overlap: those that touch are one. */
export function piecesOf(spans: readonly Span[], area: Area): Piece[] {
  const last = new Map<SpanState, Piece>();
  const pieces: Piece[] = [];
  for (const { state, from, until = area.until } of spans) {
    if (until <= area.from || from >= area.until) continue;
    const right = Math.max(xOf(until, area), LEAST_WIDTH);
    const left = Math.min(xOf(from, area), right - LEAST_WIDTH, area.width - LEAST_WIDTH);
    const before = last.get(state);
    if (before !== undefined && left <= before.right) {
      before.right = Math.max(before.right, right);
      continue;
    }
    const piece: Piece = { state, left: Math.max(0, left), right };
    last.set(state, piece);
    pieces.push(piece);
  }
  return pieces;
}

/** Returns an SVG path for each state that is in the pieces. */
export function pathsOf(pieces: readonly Piece[]): Map<SpanState, string> {
  const paths = new Map<SpanState, string>();
  for (const { state, left, right } of pieces) {
    const height = STATE_HEIGHT[state];
    const width = Math.round((right - left) * 10) / 10;
    const piece = `M${left} ${STRIP_HEIGHT - height}h${width}v${height}h${-width}z`;
    paths.set(state, (paths.get(state) ?? "") + piece);
  }
  return paths;
}

/** Returns the index of the wake that is nearest to a place, if one is at most `reach` pixels away. */
export function nearestWake(wakes: readonly Wake[], area: Area, x: number, reach: number): number | undefined {
  let best: number | undefined;
  let distance = reach;
  for (const [index, { at }] of wakes.entries()) {
    const away = Math.abs(xOf(at, area) - x);
    if (away > distance) continue;
    best = index;
    distance = away;
  }
  return best;
}

/** Returns how long each state lasted within the area, in milliseconds. */
export function timesOf(spans: readonly Span[], { from, until }: Area): Record<SpanState, number> {
  const times = { running: 0, warm: 0, suspended: 0, stopped: 0, failed: 0 };
  for (const span of spans)
    times[span.state] += Math.max(0, Math.min(until, span.until ?? until) - Math.max(from, span.from));
  return times;
}

/** Returns the full hours of the user's clock within the area that `step` divides. */
export function hoursIn({ from, until }: Pick<Area, "from" | "until">, step: number): number[] {
  const first = new Date(from);
  first.setMinutes(0, 0, 0);
  const hours: number[] = [];
  for (const at = first; at.getTime() <= until; at.setHours(at.getHours() + 1))
    if (at.getTime() >= from && at.getHours() % step === 0) hours.push(at.getTime());
  return hours;
}
