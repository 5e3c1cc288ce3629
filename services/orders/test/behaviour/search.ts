import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { longOr } from "../../../../scripts/lib/long.mjs";
import { fold } from "../../src/fold.ts";
import type { Stage } from "../behaviour.ts";

interface Row {
  id: number;
  name: string;
}

/** Letters with Unicode's case rules, characters with a meaning in patterns, and any others. */
const letter = fc.oneof(
  fc.constantFrom(...Array.from("aAbBzZ")),
  fc.constantFrom(...Array.from("%_\\*?'\"$^[]()")),
  fc.constantFrom(...Array.from("éÉßẞſsSΣσςİiıIÅåÅǅДд𐐀𐐨ﬀ漢 ")),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
);
const text = fc.array(letter, { minLength: 1, maxLength: 12 }).map((letters) => letters.join(""));
/** A text that the API accepts. */
const isText = (value: string) => value !== "" && value.isWellFormed() && !value.includes("\0") && value.length <= 100;

export function describeSearch({ api, world, variant }: Stage): void {
  let supplierId = 0;
  const all: Row[] = [];
  const add = async (names: string[]): Promise<void> => {
    const rows = names.map((name) => ({ name, supplierId, unitPrice: "1", unitsInStock: 1 }));
    const { status, body } = await api().call("POST", "/products", rows);
    expect(status).toBe(201);
    all.push(...body.map(({ id, name }: Row) => ({ id, name })));
  };
  const find = async (query: Record<string, string | number>) => {
    const pairs = Object.entries(query).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const { status, body } = await api().call("GET", `/products?${pairs.join("&")}`);
    expect(status).toBe(200);
    return {
      total: body.total as number,
      names: body.items.map(({ name }: Row) => name) as string[],
      items: body.items,
    };
  };
  const matching = (needle: string) => all.filter(({ name }) => fold(name).includes(fold(needle)));

  beforeAll(async () => {
    supplierId = (await api().call("POST", "/suppliers", [{ companyName: "s", country: "c" }])).body[0].id;
    await add(["Straße", "STRASSE 2", "50% off", "50 off", "snake_case", "snakeXcase", "back\\slash", "ΟΔΟΣ", "Łódź"]);
    await add(["cafe\u0301", "CAFÉ", "О́блако", "İstanbul", "İSTANBUL", "漢字カナ", "𐐔𐐯𐑅", "it's", '"q"', "a  b"]);
  });

  test.each([
    ["straße", ["Straße", "STRASSE 2"]],
    ["SSE", ["Straße", "STRASSE 2"]],
    ["0%", ["50% off"]],
    ["%", ["50% off"]],
    ["_", ["snake_case"]],
    ["\\", ["back\\slash"]],
    ["οδος", ["ΟΔΟΣ"]],
    ["δοσ", ["ΟΔΟΣ"]],
    ["łÓDŹ", ["Łódź"]],
    ["Café", ["cafe\u0301", "CAFÉ"]],
    ["i\u0307st", ["İstanbul", "İSTANBUL"]],
    ["字カ", ["漢字カナ"]],
    ["𐐼𐐯", ["𐐔𐐯𐑅"]],
    ["'", ["it's"]],
    ['"', ['"q"']],
    ["  ", ["a  b"]],
    ["nothing like it", []],
  ])("%s finds %j", async (needle, expected) => {
    expect(await find({ name: needle })).toMatchObject({ names: expected, total: expected.length });
  });

  test("an item has exactly the documented fields", async () => {
    const { items } = await find({ name: "snake_" });
    expect(items).toEqual([{ id: expect.any(Number), name: "snake_case", unitPrice: "1.0000", unitsInStock: 1 }]);
  });

  test("without a name, or with an empty one, everything is found by id, 20 at a time", async () => {
    await add(Array.from({ length: 30 }, (_, index) => `filler ${index}`));
    const names = all.map(({ name }) => name);
    for (const query of [{}, { name: "" }]) {
      expect(await find(query)).toMatchObject({ names: names.slice(0, 20), total: all.length });
    }
    expect((await find({ limit: 100 })).names).toEqual(names);
  });

  test("total counts all matches, regardless of offset and limit", async () => {
    const names = matching("filler").map(({ name }) => name);
    for (const [offset, limit] of [
      [0, 1],
      [7, 5],
      [29, 10],
      [30, 10],
      [2_147_483_647, 100],
    ] as const) {
      const found = await find({ name: "FILLER", offset, limit });
      expect(found).toMatchObject({ names: names.slice(offset, offset + limit), total: names.length });
    }
    expect((await find({ offset: 2_147_483_647 })).total).toBe(all.length);
  });

  test.each([
    "limit=0",
    "limit=101",
    "limit=-1",
    "limit=1.5",
    "limit=",
    "limit=1&limit=2",
    "offset=-1",
    "offset=2147483648",
  ])("?%s is refused", async (query) => {
    const { status, body } = await api().call("GET", `/products?${query}`);
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ in: "query", pointer: `/${query.split("=", 1)[0]}` }]);
  });

  test("any part of any name finds the names that contain it when folded", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(text, { minLength: 1, maxLength: 15 }),
        fc.nat(),
        fc.nat(),
        text,
        async (names, ...at) => {
          const given = names.filter(isText);
          if (given.length > 0) await add(given);
          const [start, length, other] = at;
          const source = given[start % Math.max(given.length, 1)] ?? "a";
          const letters = Array.from(source);
          const part = letters.slice(start % letters.length, (start % letters.length) + 1 + (length % 4)).join("");
          for (const needle of [part, part.toUpperCase(), part.toLowerCase(), other].filter(isText)) {
            const expected = matching(needle);
            const { items, total } = await world().storage.findProducts({ name: needle, offset: 0, limit: 100 });
            expect(total, needle).toBe(expected.length);
            expect(
              items.map(({ id, name }) => ({ id, name })),
              needle,
            ).toEqual(expected.slice(0, 100));
            expect(await find({ name: needle, limit: 100 })).toMatchObject({ items, total });
          }
        },
      ),
      { numRuns: variant.searchRuns ?? longOr(60, 25) },
    );
  });
}
