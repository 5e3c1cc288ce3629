import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findNamed, isValidName, type Named, volumeNameRefusal } from "../src/naming.ts";

test.each(["a", "7", "shop", "my-shop-2", "a--b", "a".repeat(63)])("%j is a valid name", (name) => {
  expect(isValidName(name)).toBe(true);
});

test.each(["", "-a", "a-", "Shop", "my_shop", "a.b", "a b", "ä", "a\n", "a".repeat(64)])("%j is not", (name) => {
  expect(isValidName(name)).toBe(false);
});

const MACHINE = { noun: "machine" };
const VOLUME = { noun: "volume", prefix: "vol_" };

const web = { id: "3f9c01ab22de41", name: "web" };
const worker = { id: "3f9d77ab22de42", name: "worker" };
const machines = [web, worker];

describe("a machine is found by", () => {
  test.each([
    ["its id", "3f9c01ab22de41", web],
    ["its name", "worker", worker],
    ["the beginning of its id", "3f9c", web],
    ["too little of its id", "3f", undefined],
    ["the middle of its id", "c01", undefined],
    ["the beginning of its name", "wor", undefined],
    ["nothing", "", undefined],
  ])("%s", (_how, word, expected) => expect(findNamed(word, machines, MACHINE)).toBe(expected));

  test("a name before the beginning of an id, and an id before a name", () => {
    const named = { id: "aaaaaaaaaaaaaa", name: "3f9c" };
    const posing = { id: "bbbbbbbbbbbbbb", name: web.id };
    expect(findNamed("3f9c", [...machines, named], MACHINE)).toBe(named);
    expect(findNamed(web.id, [posing, ...machines], MACHINE)).toBe(web);
  });
});

test("a word that matches several machines is refused with all of them", () => {
  expect(() => findNamed("3f9", machines, MACHINE)).toThrow(
    "`3f9` matches 2 machines: 3f9c01ab22de41 (web), 3f9d77ab22de42 (worker). Use an id, or more characters of one.",
  );
  const many = Array.from({ length: 30 }, (_, index) => ({ id: `abc${String(index).padStart(11, "0")}`, name: "m" }));
  expect(() => findNamed("abc", many, MACHINE)).toThrow(/abc00000000009 \(m\) and 20 more\./);
});

test("a volume is also found without vol_, and by its name if no other volume has it", () => {
  const data = { id: "vol_0123456789abcdef", name: "data" };
  const logs = { id: "vol_0199456789abcdef", name: "logs" };
  const more = { id: "vol_ff00456789abcdef", name: "logs" };
  const volumes = [data, logs, more];
  expect(findNamed("0123", volumes, VOLUME)).toBe(data);
  expect(findNamed("vol_012", volumes, VOLUME)).toBe(data);
  expect(findNamed("data", volumes, VOLUME)).toBe(data);
  expect(findNamed("vol_", volumes, VOLUME)).toBeUndefined();
  expect(findNamed("vol", volumes, VOLUME)).toBeUndefined();
  expect(() => findNamed("logs", volumes, VOLUME)).toThrow("matches 2 volumes");
});

const id = fc.stringMatching(/^[0-9a-f]{14}$/);
const thing: fc.Arbitrary<Named> = fc.record({ id, name: fc.stringMatching(/^[0-9a-z]{1,4}$/) });

test("what is found is unambiguous: nothing else begins like it or has its name", () => {
  const things = fc.uniqueArray(thing, { selector: (one) => one.id, maxLength: 20 });
  fc.assert(
    fc.property(things, fc.stringMatching(/^[0-9a-f]{1,14}$/), (all, word) => {
      let found: Named | undefined;
      try {
        found = findNamed(word, all, MACHINE);
      } catch {
        expect(all.filter((one) => one.name === word || one.id.startsWith(word)).length).toBeGreaterThan(1);
        return;
      }
      if (found === undefined) return;
      const rivals = all.filter((one) => one !== found && (one.id === word || one.name === word));
      expect(found.id === word || found.name === word || found.id.startsWith(word)).toBe(true);
      if (found.id !== word) expect(rivals).toEqual([]);
    }),
  );
});

test.each([
  ["data", true],
  ["my-data_2", true],
  ["a".repeat(63), true],
  ["a".repeat(64), false],
  ["-data", false],
  ["data_", false],
  ["My-Data", false],
  ["a/b", false],
  ["vol_0123456789abcdef", false],
])("whether %s can be the name of a volume: %s", (name, can) => {
  expect(volumeNameRefusal(name) === undefined).toBe(can);
});
