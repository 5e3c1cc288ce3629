import { describe, expect, test } from "vitest";
import { isPreviewOf, lookForExpired, type Overdue, previewAppName, previewName } from "../src/preview.ts";

const MINUTE = 60_000;
const CREATED = "2026-01-01T00:00:00.000Z";
const END = "2026-01-04T00:00:00.000Z";
const shop = { name: "shop", createdAt: CREATED };
const preview = { of: "shop", ofCreatedAt: CREATED, expiresAt: END };
const pr12 = { name: "pr-12--shop", createdAt: CREATED, preview };

describe("the name of a preview's app", () => {
  test("is made of both names, and leads back to them", () => {
    expect(previewAppName("pr-12", "shop")).toBe("pr-12--shop");
    expect(previewName(pr12)).toBe("pr-12");
    expect(previewName({ name: previewAppName("a", "b--shop"), preview: { ...preview, of: "b--shop" } })).toBe("a");
  });

  test.each([
    ["", "1 to 63"],
    ["PR-12", "lowercase"],
    ["pr-12-", "hyphen"],
    ["feature/cart", "lowercase"],
    // Else `a--b` of `shop` and `a` of `b--shop` would be one.
    ["a--b", "single hyphens"],
    // Browsers would show `xn--shop-9ja` as another name.
    ["xn", "two characters"],
    ["12", "two characters"],
    ["x".repeat(58), "64 characters"],
  ])("%o is refused, and the message says why", (name, why) => {
    expect(() => previewAppName(name, "shop")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => previewAppName(name, "shop")).toThrow(why);
  });

  test("takes 63 characters", () => {
    expect(previewAppName("x".repeat(57), "shop")).toHaveLength(63);
  });
});

test("a later app of the name has nothing to do with the previews of the earlier one", () => {
  expect(isPreviewOf(pr12, shop)).toBe(true);
  expect(isPreviewOf(pr12, { ...shop, createdAt: END })).toBe(false);
  expect(isPreviewOf(pr12, { ...shop, name: "bank" })).toBe(false);
  expect(isPreviewOf(shop, shop)).toBe(false);
});

describe("the end of a preview", () => {
  /** Looks at these minutes after the end, by the wall clock and by the steady one. Returns what is due at last. */
  function looks(times: readonly { wall: number; steady: number; apps?: Parameters<typeof lookForExpired>[0] }[]) {
    let overdue: Overdue = new Map();
    let due: string[] = [];
    for (const { wall, steady, apps = [shop, pr12] } of times) {
      const now = Date.parse(END) + wall * MINUTE;
      ({ overdue, due } = lookForExpired(apps, overdue, { now, steady: steady * MINUTE, graceMs: 10 * MINUTE }));
    }
    return due;
  }

  test("comes once looks have found its time over for the whole grace", () => {
    expect(looks([{ wall: -1, steady: 0 }])).toEqual([]);
    expect(looks([{ wall: 0, steady: 1 }])).toEqual([]);
    expect(
      looks([
        { wall: 0, steady: 1 },
        { wall: 9, steady: 10 },
      ]),
    ).toEqual([]);
    expect(
      looks([
        { wall: 0, steady: 1 },
        { wall: 9, steady: 10 },
        { wall: 10, steady: 11 },
      ]),
    ).toEqual(["pr-12--shop"]);
  });

  test("does not come because the platform was off for a month, until it has looked for the grace", () => {
    expect(looks([{ wall: 43_200, steady: 0 }])).toEqual([]);
    expect(
      looks([
        { wall: 43_210, steady: 10 },
        { wall: 43_210, steady: 10 },
      ]),
    ).toEqual([]);
    expect(
      looks([
        { wall: 43_200, steady: 0 },
        { wall: 43_210, steady: 10 },
      ]),
    ).toEqual(["pr-12--shop"]);
  });

  test("does not come because of a clock that was wrong for a while", () => {
    const wrong = [
      { wall: 99_999, steady: 0 },
      { wall: 99_999, steady: 9 },
    ];
    expect(looks([...wrong, { wall: -60, steady: 9 }, { wall: -50, steady: 20 }])).toEqual([]);
    // It is set right, and later the time is over indeed: the grace begins again.
    expect(looks([...wrong, { wall: -60, steady: 9 }, { wall: 1, steady: 70 }])).toEqual([]);
  });

  test("does not come when a deploy has renewed it, also if the new time is over when it is looked at", () => {
    const renewed = { ...pr12, preview: { ...preview, expiresAt: "2026-01-04T00:05:00.000Z" } };
    expect(
      looks([
        { wall: 0, steady: 0 },
        { wall: 10, steady: 10, apps: [shop, renewed] },
      ]),
    ).toEqual([]);
  });

  test("never comes for an app that is not a preview, whatever its name is", () => {
    const other = { name: "pr-12--shop", createdAt: CREATED };
    expect(looks([0, 20, 40].map((at) => ({ wall: at, steady: at, apps: [shop, other] })))).toEqual([]);
  });

  test("never comes for a time that cannot be read, and is not decided twice", () => {
    for (const changed of [{ expiresAt: "soon" }, { expired: true as const }]) {
      const apps = [shop, { ...pr12, preview: { ...preview, ...changed } }];
      expect(looks([0, 20, 40].map((at) => ({ wall: at, steady: at, apps })))).toEqual([]);
    }
  });
});
