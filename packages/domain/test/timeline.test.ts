/** What charts show, as pure rules. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { STATES } from "../src/machine.ts";
import {
  coarser,
  type Interval,
  type Span,
  type StateChange,
  type StoredState,
  spansOf,
  storedStateOf,
  summaryOf,
} from "../src/timeline.ts";

const STORED: readonly StoredState[] = ["running", "suspended", "stopped", "failed"];
const state = fc.constantFrom(...STORED);

/** Changes as the store has them: in order, each from where the last one led, several at one moment included. */
const history = fc
  .record({
    first: state,
    steps: fc.array(fc.record({ ms: fc.integer({ min: 0, max: 400 }), to: state }), { maxLength: 40 }),
    warm: fc.array(fc.record({ gap: fc.integer({ min: 0, max: 300 }), ms: fc.integer({ min: 0, max: 300 }) }), {
      maxLength: 15,
    }),
    from: fc.integer({ min: 0, max: 4000 }),
    ms: fc.integer({ min: 1, max: 6000 }),
  })
  .map(({ first, steps, warm, from, ms }) => {
    const changes: StateChange[] = [];
    let before = first;
    let at = 0;
    for (const step of steps) {
      at += step.ms;
      changes.push({ at, before, state: step.to });
      before = step.to;
    }
    const intervals: Interval[] = [];
    let end = 0;
    for (const one of warm) {
      intervals.push({ from: end + one.gap, until: end + one.gap + one.ms });
      end += one.gap + one.ms;
    }
    return { first, changes, warm: intervals, now: before, from, until: Math.max(from + ms, at) };
  });

function expectWhole(spans: readonly Span[], { from, until }: Interval): void {
  expect(spans[0]?.from).toBe(from);
  expect(spans.at(-1)?.until).toBe(until);
  for (const [index, span] of spans.entries()) {
    expect(span.until).toBeGreaterThan(span.from);
    const next = spans[index + 1];
    if (next === undefined) continue;
    expect(next.from).toBe(span.until);
    expect(next.state).not.toBe(span.state);
  }
}

/** What the machine did at a moment, found the slow way. */
function stateAt(
  moment: number,
  { first, changes, warm }: { first: StoredState; changes: StateChange[]; warm: Interval[] },
) {
  const last = changes.findLast(({ at }) => at <= moment)?.state ?? first;
  const isWarm = warm.some(({ from, until }) => from <= moment && moment < until);
  return last === "suspended" && isWarm ? "warm" : last;
}

describe("spans", () => {
  test("are in order, do not overlap, leave no gap, and say at every moment what the machine did", () => {
    fc.assert(
      fc.property(
        history,
        fc.array(fc.double({ min: 0, max: 0.9999, noNaN: true }), { maxLength: 20 }),
        (known, moments) => {
          const spans = spansOf(known, known);
          expectWhole(spans, known);
          for (const share of moments) {
            const moment = Math.floor(known.from + share * (known.until - known.from));
            const span = spans.find(({ from, until }) => from <= moment && moment < until);
            expect(span?.state).toBe(stateAt(moment, known));
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("of a chart that does not begin at the beginning are the same as those of the whole", () => {
    fc.assert(
      fc.property(history, (known) => {
        const { from, until } = known;
        const later = known.changes.filter(({ at }) => at > from);
        const warm = known.warm.filter((one) => one.until > from);
        expect(spansOf({ changes: later, warm, now: known.now }, { from, until })).toEqual(spansOf(known, known));
      }),
    );
  });

  test("are no more than wanted, and still cover the same time", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 30 }), (known, most) => {
        const spans = spansOf(known, known);
        const fewer = coarser(spans, most);
        expect(fewer.length).toBeLessThanOrEqual(Math.max(most, 1));
        expectWhole(fewer, known);
        if (spans.length <= most) expect(fewer).toEqual(spans);
      }),
      { numRuns: 2000 },
    );
  });

  test("that are too short to be seen are shown as what took up most of their time", () => {
    const flapping = (count: number): Span[] =>
      Array.from({ length: count }, (_, index) => ({
        state: index % 2 === 0 ? ("suspended" as const) : ("running" as const),
        from: index * 10 - (index % 2 === 1 ? 5 : 0),
        until: index * 10 + (index % 2 === 0 ? 5 : 10),
      }));
    expect(coarser(flapping(100), 10)).toEqual([{ state: "running", from: 0, until: 1000 }]);
  });

  test("go one way when the clock was set back, and end with what the machine does now", () => {
    const changes = [
      { at: 20, before: "stopped" as const, state: "running" as const },
      { at: 5, before: "running" as const, state: "suspended" as const },
    ];
    expect(spansOf({ changes, warm: [], now: "suspended" }, { from: 10, until: 30 })).toEqual([
      { state: "stopped", from: 10, until: 20 },
      { state: "suspended", from: 20, until: 30 },
    ]);
  });

  test("of a machine that never changed are one", () => {
    const known = { changes: [], warm: [], now: "stopped" as const };
    expect(spansOf(known, { from: 5, until: 9 })).toEqual([{ state: "stopped", from: 5, until: 9 }]);
    expect(spansOf({ ...known, now: "suspended", warm: [{ from: 0, until: 7 }] }, { from: 5, until: 9 })).toEqual([
      { state: "warm", from: 5, until: 7 },
      { state: "suspended", from: 7, until: 9 },
    ]);
    expect(spansOf(known, { from: 5, until: 5 })).toEqual([]);
  });
});

test("every state of a machine has its place in a chart, and a passing one that of the machine before", () => {
  const shown = Object.fromEntries(STATES.map((each) => [each, storedStateOf(each, "failed")]));
  expect(shown).toEqual({
    created: "stopped",
    running: "running",
    suspended: "suspended",
    stopped: "stopped",
    failed: "failed",
    restarting: "stopped",
    starting: "running",
    suspending: "failed",
    stopping: "failed",
    updating: "failed",
    destroying: "failed",
    destroyed: null,
  });
});

test("latencies are those of real wakes: the nearest rank", () => {
  expect(summaryOf([])).toBeUndefined();
  expect(summaryOf([7])).toEqual({ count: 1, p50Ms: 7, p99Ms: 7 });
  expect(summaryOf([30, 10, 20])).toEqual({ count: 3, p50Ms: 20, p99Ms: 30 });
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(summaryOf(hundred)).toEqual({ count: 100, p50Ms: 50, p99Ms: 99 });
  fc.assert(
    fc.property(fc.array(fc.nat(), { minLength: 1 }), (durations) => {
      const { p50Ms = -1, p99Ms = -1 } = summaryOf(durations) ?? {};
      expect(durations).toContain(p50Ms);
      expect(durations).toContain(p99Ms);
      expect(p50Ms).toBeLessThanOrEqual(p99Ms);
    }),
  );
});
