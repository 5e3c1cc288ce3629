/** The rules for networks that apps share. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AppNetwork, aliasesOf, freeAppAddress, groupOf, MOST_ALIASES } from "../src/app-network.ts";

const member = (address: string) => ({
  name: address,
  network: { name: "shop", address, aliases: [] } satisfies AppNetwork,
});

test("aliases are what a resolver can ask for, in lowercase, each once", () => {
  expect(aliasesOf(["DB", "my_db.local", "db", "a-1"])).toEqual(["db", "my_db.local", "a-1"]);
});

test.each([
  "",
  "a b",
  "-a",
  "a-",
  "a..b",
  ".a",
  "localhost",
  "x.localhost",
  "db.internal",
  "shop.flycast",
  "ä",
  "a".repeat(64),
  `${"a.".repeat(130)}a`,
])("%j is refused as an alias", (alias) => expect(() => aliasesOf([alias])).toThrow("cannot be an alias"));

test("more aliases than an app may have are refused", () => {
  expect(() => aliasesOf(Array.from({ length: MOST_ALIASES + 1 }, (_, at) => `a${at}`))).toThrow(
    `at most ${MOST_ALIASES}`,
  );
});

test("apps get different addresses of the range that nobody outside has, wherever the search begins", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { maxLength: 40 }),
      (starts) => {
        const given: string[] = [];
        for (const start of starts) given.push(freeAppAddress(given.map(member), start));
        expect(new Set(given).size).toBe(given.length);
        for (const address of given)
          expect(address).toMatch(/^198\.1[89]\.\d+\.([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])$/);
      },
    ),
  );
});

test("the next free one is taken, and after the last the first", () => {
  expect(freeAppAddress([], 0)).toBe("198.18.0.1");
  expect(freeAppAddress([member("198.18.0.1")], 0)).toBe("198.18.0.2");
  expect(freeAppAddress([], 0.9999999)).toBe("198.18.0.1");
});

test("an app is by itself, unless it shares a network, whatever both are called", () => {
  expect(groupOf("shop", undefined)).not.toBe(groupOf("web", { name: "shop", address: "198.18.0.1", aliases: [] }));
});
