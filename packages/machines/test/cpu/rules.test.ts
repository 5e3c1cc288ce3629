/** Who comes last when machines want more CPU than there is. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Contender, shareSince, wants, whoComesLast, whoIsDoubted } from "../../src/cpu/rules.ts";

/** Machines that had these parts of their CPUs, and waited for nobody, or that long. */
const had = (all: readonly number[], { waited = 0, last = false } = {}): Contender[] =>
  all.map((ran) => ({ ran, waited, last, looks: 2, spared: false, doubted: 0 }));
const one = (ran: number, waited: number, last = false) => had([ran], { waited, last });
const without = (count: number, ran: number, waited: number) =>
  had(
    Array.from({ length: count }, () => ran),
    { waited },
  );

const judged = (machines: readonly Contender[], cpus = 2) => whoComesLast(machines, cpus);

test("seven machines that never stop come after one that answers now and then, as soon as everyone waits for everyone", () => {
  expect(wants({ ran: 0.1, waited: 0.5 })).toBeCloseTo(0.2);
  expect(judged([...one(0.1, 0.5), ...without(7, 0.27, 0.73)])).toEqual([false, ...without(7, 0, 0).map(() => true)]);
});

test("however many there are: each gets next to nothing, and wants all", () => {
  const greedy = without(80, 0.025, 0.98);
  expect(judged([...one(0.01, 0.6), ...greedy])).toEqual([false, ...greedy.map(() => true)]);
});

test("one that waits so long that it seems to want all does not come last, as it has less than others", () => {
  expect(wants({ ran: 0.12, waited: 1.5 })).toBe(1);
  const spared = without(7, 0.22, 0.9).map((machine) => ({ ...machine, spared: true }));
  expect(judged([...one(0.12, 1.5), ...spared]), "and those that boot may have all").not.toContain(true);
  const [polite, ...greedy] = judged([...one(0.12, 1.5), ...without(7, 0.22, 0.9)]);
  expect([polite, greedy.includes(false)]).toEqual([false, false]);
});

test("a single look may show anything", () => {
  expect(judged([...one(0, 0), ...one(1, 0).map((machine) => ({ ...machine, looks: 1 }))])).toEqual([false, false]);
});

test("one with many CPUs that does one thing is no more modest than one with one", () => {
  const spins = new Map(
    [1, 2, 3, 4].map((thread) => [thread, { ranMs: thread === 4 ? 250 : 0, waitedMs: thread === 4 ? 250 : 0 }]),
  );
  expect(wants(shareSince(new Map(), spins, 500))).toBe(1);
});

test("of those that come last, the one that had least is doubted", () => {
  expect(whoIsDoubted([...one(0.01, 0), ...one(0.2, 1, true), ...one(0.1, 1, true), ...one(0.3, 1, true)])).toBe(2);
  expect(whoIsDoubted(one(1, 0))).toBeUndefined();
  const turns = [...one(0.1, 1, true), ...one(0.2, 1, true)].map((machine, index) => ({
    ...machine,
    doubted: 80 - index,
  }));
  expect(whoIsDoubted(turns), "everyone has a turn").toBe(1);
});

test("with nobody to come before, nobody comes last", () => {
  expect(judged(had([1]))).toEqual([false]);
  expect(judged(had([0.7, 0.6, 0.7]))).toEqual([false, false, false]);
  expect(judged(had([0, 0.09])), "nobody wants much").toEqual([false, false]);
  expect(judged([])).toEqual([]);
});

test("one in the middle stays what it is", () => {
  const middle = (last: boolean) => judged([...had([0.45], { last }), ...had([0.01, 1])])[0];
  expect([middle(false), middle(true)]).toEqual([false, true]);
});

test("one that comes last gets its place back when the host's own programs leave it nothing, not when its likes are many", () => {
  const last = (count: number) =>
    judged(
      [
        ...one(0.01, 0),
        ...had(
          Array.from({ length: count }, () => 0.02),
          { waited: 0.98, last: true },
        ),
      ],
      1,
    );
  expect(last(1)).toEqual([false, false]);
  expect(last(20).filter(Boolean)).toHaveLength(20);
});

test("a machine that wants less never comes after one that wants more, and was the same", () => {
  const ran = fc.array(fc.double({ min: 0, max: 2, noNaN: true }));
  fc.assert(
    fc.property(ran, fc.double({ min: 0, max: 4, noNaN: true }), fc.boolean(), (all, waited, last) => {
      const lasts = judged(
        had(
          all.toSorted((a, b) => a - b),
          { waited, last },
        ),
      );
      expect(lasts.lastIndexOf(false)).toBeLessThan(lasts.includes(true) ? lasts.indexOf(true) : lasts.length);
    }),
  );
});

test("what a machine had is what its busiest thread had since, also one that is new", () => {
  const before = new Map([
    [1, { ranMs: 100, waitedMs: 10 }],
    [2, { ranMs: 5000, waitedMs: 5000 }], // has ended
    [3, { ranMs: 70, waitedMs: 70 }], // has ended, and another one has its number
  ]);
  const now = new Map([
    [1, { ranMs: 300, waitedMs: 110 }],
    [3, { ranMs: 20, waitedMs: 0 }],
    [4, { ranMs: 200, waitedMs: 300 }], // new
  ]);
  expect(shareSince(before, now, 500)).toEqual({ ran: 0.4, waited: 0.6 });
  expect(shareSince(new Map(), new Map(), 500), "it has none").toEqual({ ran: 0, waited: 0 });
});
