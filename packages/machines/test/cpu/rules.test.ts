/** Who comes first when machines want more CPU than there is. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { turnsOf, type Use } from "../../src/cpu/rules.ts";

const usual = (...uses: number[]): Use[] => uses.map((use) => ({ use, turn: "usual" }));

describe("turns", () => {
  test("an app that answers now and then comes before seven that never stop", () => {
    expect(turnsOf(usual(0.03, ...Array.from({ length: 7 }, () => 0.28)))).toEqual([
      "first",
      ...Array.from({ length: 7 }, () => "last"),
    ]);
  });

  test("with nobody to come before, nobody comes last", () => {
    expect(turnsOf(usual(1))).toEqual(["usual"]);
    expect(turnsOf(usual(0.7, 0.6, 0.7))).toEqual(["usual", "usual", "usual"]);
    expect(turnsOf(usual(0, 0.09)), "nobody uses much").toEqual(["usual", "usual"]);
    expect(turnsOf([])).toEqual([]);
  });

  test("one in the middle stays what it is", () => {
    const middle = (turn: Use["turn"]) => turnsOf([{ use: 0.4, turn }, ...usual(0.01, 1)])[0];
    expect([middle("first"), middle("usual"), middle("last")]).toEqual(["first", "first", "last"]);
  });

  test("a machine that uses less never comes after one that uses more and had the same turn", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 2, noNaN: true })),
        fc.constantFrom("first", "usual", "last"),
        (uses, turn) => {
          const sorted = uses.toSorted((a, b) => a - b);
          const turns = turnsOf(sorted.map((use) => ({ use, turn })));
          expect(turns.indexOf("last") === -1 || turns.lastIndexOf("first") < turns.indexOf("last")).toBe(true);
        },
      ),
    );
  });
});
