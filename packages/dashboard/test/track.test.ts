/** What the sleep chart knows of a machine: spans and wakes, from a reading and from events. */
import type { Machine, StreamEvent } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bounded,
  EMPTY_TRACK,
  inStateSince,
  MOST_SPANS,
  MOST_WAKES,
  type Span,
  type Track,
  trackAfter,
  trackOf,
  trackSince,
  trackWith,
} from "../src/data/track.ts";

const STATES = [
  "created",
  "starting",
  "running",
  "suspending",
  "suspended",
  "stopping",
  "stopped",
  "failed",
  "updating",
  "restarting",
] as const;

function event(at: number, to: string, data: Record<string, unknown> = {}): StreamEvent {
  const time = new Date(at).toISOString();
  return { sequence: at, at: time, type: `machine.${to}`, app_name: "shop", machine_id: "a1", data: { to, ...data } };
}

function started(at: number, kind = "resume"): StreamEvent {
  return event(at, "running", { start: { kind, reason: "snapshot", at: "", duration_ms: 212 } });
}

/** Spans are in order, without a gap or an overlap, and only the last one lasts. */
function expectWhole(spans: readonly Span[]) {
  for (const [index, span] of spans.entries()) {
    const next = spans[index + 1];
    expect(span.until).toBe(next?.from);
    if (next !== undefined) expect(next.from).toBeGreaterThanOrEqual(span.from);
  }
}

const steps = fc.array(fc.tuple(fc.nat({ max: 10_000 }), fc.constantFrom(...STATES)), { maxLength: 60 });

/** The tracks that come of machines which change at random. */
const tracks = steps.map((all) => {
  let at = 1000;
  let track = EMPTY_TRACK;
  for (const [wait, state] of all) {
    at += wait;
    track = trackAfter(track, event(at, state));
  }
  return track;
});

test("spans are whole after any events, and neighbors differ", () => {
  fc.assert(
    fc.property(tracks, ({ spans }) => {
      expectWhole(spans);
      for (const [index, { state }] of spans.entries()) expect(spans[index + 1]?.state).not.toBe(state);
    }),
  );
});

test("an event that was in the reading already changes nothing", () => {
  fc.assert(
    fc.property(tracks, fc.constantFrom(...STATES), (track, state) => {
      const from = track.spans.at(-1)?.from;
      fc.pre(from !== undefined && from > 0);
      expect(trackAfter(track, event((from ?? 0) - 1, state))).toBe(track);
    }),
  );
});

test("a machine that falls asleep and wakes has three spans and a wake", () => {
  let track = trackAfter(EMPTY_TRACK, event(1000, "running"));
  for (const one of [event(5000, "suspending"), event(6000, "suspended"), event(8000, "starting"), started(8200)])
    track = trackAfter(track, one);
  expect(track.spans).toEqual([
    { state: "running", from: 1000, until: 6000 },
    { state: "suspended", from: 6000, until: 8000 },
    { state: "running", from: 8000, until: undefined },
  ]);
  expect(track.wakes).toEqual([{ at: 8200, kind: "resume", reason: "snapshot", took: 212 }]);
  expect(trackAfter(track, started(8200)).wakes).toHaveLength(1);
});

describe("since when a machine is in its state", () => {
  const asleep = trackAfter(trackAfter(EMPTY_TRACK, event(1000, "running")), event(6000, "suspended"));
  const boot = (at: number) => ({ kind: "cold", reason: "", at: new Date(at).toISOString(), duration_ms: 9 }) as const;

  test("is known of a state that lasts", () => {
    expect(inStateSince(asleep, { state: "suspended", last_boot: boot(1000) })).toBe(6000);
  });

  test("is not known of a passing state, of one that no event has told yet, or without a track", () => {
    const states = ["starting", "suspending", "stopping", "updating", "restarting", "destroying", "running"] as const;
    for (const state of states) expect(inStateSince(asleep, { state, last_boot: null })).toBeUndefined();
    expect(inStateSince(EMPTY_TRACK, { state: "suspended", last_boot: null })).toBeUndefined();
  });

  test("is its last start when it was updated while it ran", () => {
    let track = trackAfter(EMPTY_TRACK, event(1000, "running"));
    for (const one of [event(5000, "updating"), event(6000, "starting"), started(8000, "cold")])
      track = trackAfter(track, one);
    expect(inStateSince(track, { state: "running", last_boot: boot(8000) })).toBe(8000);
  });
});

describe("a machine that is kept warm", () => {
  const asleep = trackAfter(EMPTY_TRACK, event(1000, "suspended"));
  const machine = (until: string | null) =>
    ({ state: "suspended", snapshot: { created_at: "", size_bytes: 1, warm_until: until } }) as Machine;
  const warm = trackWith(asleep, machine(new Date(9000).toISOString()), 1200);

  test("is warm since it sleeps", () => {
    expect(warm.spans).toEqual([{ state: "warm", from: 1000, until: undefined }]);
  });

  test("is suspended when its virtual machine has ended", () => {
    expect(trackWith(warm, machine(null), 9400, machine(new Date(9000).toISOString())).spans).toEqual([
      { state: "warm", from: 1000, until: 9000 },
      { state: "suspended", from: 9000, until: undefined },
    ]);
  });
});

describe("bounds", () => {
  const spans = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 200 }).map((lengths): Span[] => {
    let from = 0;
    return lengths.map((length, index) => {
      const span = { state: index % 2 === 0 ? "running" : "suspended", from, until: from + length } as const;
      from += length;
      return index === lengths.length - 1 ? { ...span, until: undefined } : span;
    });
  });

  test("many spans become few, which cover the same time and keep the first and the last", () => {
    fc.assert(
      fc.property(spans, fc.integer({ min: 4, max: 50 }), (all, most) => {
        const few = bounded(all, most);
        expect(few.length).toBeLessThanOrEqual(Math.max(most, 2));
        expectWhole(few);
        expect(few[0]?.from).toBe(all[0]?.from);
        expect(few.at(-1)?.until).toBeUndefined();
        expect(few.at(-1)?.state).toBe(all.at(-1)?.state);
      }),
    );
  });

  test("a machine that wakes all day is kept within bounds, and counts what it left out", () => {
    let track: Track = EMPTY_TRACK;
    const cycles = 1000;
    for (let cycle = 0; cycle < cycles; cycle++) {
      track = trackAfter(track, event(cycle * 100, "suspended"));
      track = trackAfter(track, started(cycle * 100 + 50));
    }
    expect(track.spans.length).toBeLessThanOrEqual(MOST_SPANS);
    expect(track.wakes).toHaveLength(MOST_WAKES);
    expect(track.wakesLeftOut).toBe(cycles - MOST_WAKES);
    expectWhole(track.spans);
  });

  test("what was before the chart begins is forgotten", () => {
    let track = trackAfter(EMPTY_TRACK, event(0, "suspended"));
    for (const one of [started(1000), event(2000, "suspended"), started(3000)]) track = trackAfter(track, one);
    const since = trackSince(track, 1500);
    expect(since.spans.map(({ from }) => from)).toEqual([1000, 2000, 3000]);
    expect(since.wakes.map(({ at }) => at)).toEqual([3000]);
  });
});

test("what the platform sent becomes a track whose last span lasts", () => {
  const time = (ms: number) => new Date(ms).toISOString();
  const track = trackOf({
    app_name: "shop",
    machine_id: "a1",
    name: "web",
    state: "running",
    spans: [
      { state: "suspended", from: time(0), until: time(10) },
      { state: "running", from: time(10), until: time(20) },
    ],
    wakes: [{ at: time(10), kind: "warm", reason: "snapshot", duration_ms: 3 }],
    wakes_left_out: 2,
  });
  expect(track.spans.map(({ until }) => until)).toEqual([10, undefined]);
  expect([track.wakes, track.wakesLeftOut]).toEqual([[{ at: 10, kind: "warm", reason: "snapshot", took: 3 }], 2]);
});
