/** What the outer machine uses in the place of vitest means the same. */
import { describe, expect, test } from "vitest";
import { ANY, matchers } from "./mini-expect.ts";
import { expect as mini, vi as miniVi } from "./mini-vitest.ts";

type Both = typeof expect;
/** Whether a check holds. */
const holds = (check: () => unknown) => {
  try {
    check();
    return true;
  } catch {
    return false;
  }
};

describe("every matcher holds, and fails, when vitest's does", () => {
  const values = [
    1,
    0,
    "",
    "text",
    null,
    undefined,
    [],
    [1, "text"],
    { a: 1 },
    { a: 1, b: { c: [1] } },
    { b: undefined },
  ];
  test.each(["toBe", "toEqual", "toMatchObject", "toContain", "toHaveLength"] as const)("%s", (name) => {
    for (const actual of values)
      for (const expected of values) {
        const of = (one: Both) => [
          holds(() => (one(actual)[name] as (value: unknown) => void)(expected)),
          holds(() => (one(actual).not[name] as (value: unknown) => void)(expected)),
        ];
        // Neither is asked about what it is not for: vitest refuses it, and `not` with it.
        if (name === "toMatchObject" && typeof expected !== "object") continue;
        if (name === "toMatchObject" && (expected === null || typeof actual !== "object" || actual === null)) continue;
        if (name === "toContain" && !(typeof actual === "string" && typeof expected === "string")) continue;
        if (
          name === "toHaveLength" &&
          (typeof expected !== "number" || (!Array.isArray(actual) && !(typeof actual === "string")))
        )
          continue;
        expect(of(mini as never), `${name}: ${JSON.stringify([actual, expected])}`).toEqual(of(expect));
      }
  });

  test("values that stand for others", () => {
    const said = { name: "warm", list: [3, 4], at: "2026-01-01" };
    for (const [pattern, fits] of [
      [{ name: ANY.any(String), list: ANY.arrayContaining([4]), at: ANY.stringMatching(/^2026/) }, true],
      [{ name: ANY.any(Number), list: [3, 4], at: said.at }, false],
      [{ name: "warm", list: ANY.arrayContaining([5]), at: said.at }, false],
      [{ name: ANY.stringContaining("cold"), list: [3, 4], at: said.at }, false],
      [ANY.objectContaining({ name: "warm" }), true],
    ] as const)
      expect(holds(() => matchers(said).toEqual(pattern))).toBe(fits);
  });
});

test("a rejection is looked at, and a promise that is kept is a failure", async () => {
  await mini(Promise.reject(new Error("it is damaged"))).rejects.toThrow(/damaged/);
  await mini(Promise.reject(Object.assign(new Error("no"), { code: "x" }))).rejects.toMatchObject({ code: "x" });
  await expect(mini(Promise.reject(new Error("it is damaged"))).rejects.toThrow(/fine/)).rejects.toThrow();
  await expect(mini(Promise.resolve(1)).rejects.toThrow()).rejects.toThrow(/should have been rejected/);
});

test("what is waited for may take a while, and has an end", async () => {
  let looks = 0;
  await mini.poll(() => (looks += 1), { timeout: 5000 }).toBeGreaterThan(2);
  expect(await miniVi.waitUntil(() => looks > 2 && "found")).toBe("found");
  await expect(mini.poll(() => looks, { timeout: 1 }).toBe(-1)).rejects.toThrow(/is not/);
});
