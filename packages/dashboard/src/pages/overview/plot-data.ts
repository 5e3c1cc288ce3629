/** Wakes as the plots take them: a list of times, and a list of values for each line. Pure. */
import type { Wakes as WakesReport } from "@hibernaut/client/browser";
import type { WakeKind } from "../../data/track.ts";

type Values = (number | null)[];

/** For bars on top of each other: the first is the sum of all, drawn behind; each further one leaves out a kind. */
export function stackedCounts({ hours }: WakesReport, kinds: readonly WakeKind[]): number[][] {
  return kinds.map((_kind, from) =>
    hours.map((hour) => kinds.slice(from).reduce((sum, kind) => sum + (hour.kinds[kind]?.count ?? 0), 0)),
  );
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
