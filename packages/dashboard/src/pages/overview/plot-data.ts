/** Wakes as the plots take them: a list of times, and a list of values for each line. Pure. */
import type { Wakes as WakesReport } from "@hibernaut/client/browser";
import type { WakeKind } from "../../data/track.ts";

type Values = (number | null)[];

/**
 * For bars on top of each other: the first is the sum of all, drawn behind; each further one leaves out a kind. Null where
 * there is nothing to draw.
 */
export function stackedCounts({ hours }: WakesReport, kinds: readonly WakeKind[]): Values[] {
  const sumOf = (hour: WakesReport["hours"][number], chosen: readonly WakeKind[]) =>
    chosen.reduce((sum, kind) => sum + (hour.kinds[kind]?.count ?? 0), 0);
  return kinds.map((_kind, from) => hours.map((hour) => sumOf(hour, kinds.slice(from)) || null));
}

/** The powers of ten from below the least to above the most, such as 10, 100, 1000. */
export function decades(least: number, most: number): number[] {
  const first = Math.floor(Math.log10(least));
  const last = Math.max(first + 1, Math.ceil(Math.log10(most)));
  return Array.from({ length: last - first + 1 }, (_one, index) => 10 ** (first + index));
}

/** The time of each hour's middle, in seconds since 1970. */
export function hourMiddles({ hours }: WakesReport): number[] {
  return hours.map(({ from }) => Date.parse(from) / 1000 + 1800);
}

/** For each kind, its p50 and then its p99 of each hour, in milliseconds; null in hours without such wakes. */
export function latencies({ hours }: WakesReport, kinds: readonly WakeKind[]): Values[] {
  return kinds.flatMap((kind) => [
    hours.map((hour) => hour.kinds[kind]?.p50_ms ?? null),
    hours.map((hour) => hour.kinds[kind]?.p99_ms ?? null),
  ]);
}
