import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalPrice, formatUnits, MAX_PRICE_UNITS, parsePrice, sumOfLines } from "../src/decimal.ts";

const units = fc.integer({ min: 0, max: MAX_PRICE_UNITS });

test("a price is unchanged after formatting and parsing", () => {
  fc.assert(
    fc.property(units, (value) => {
      const text = formatUnits(value);
      expect(text).toMatch(/^(0|[1-9]\d{0,5})\.\d{4}$/);
      expect(parsePrice(text)).toBe(value);
      expect(canonicalPrice(text)).toBe(text);
    }),
  );
});

test("trailing zeros change nothing", () => {
  fc.assert(
    fc.property(units, (value) => {
      const text = formatUnits(value);
      const short = text.replace(/\.?0+$/, "") || "0";
      expect(canonicalPrice(short.includes(".") || !text.endsWith(".0000") ? short : text.slice(0, -5))).toBe(text);
    }),
  );
});

test.each([
  ...["", ".", "1.", ".1", "-1", "+1", "01", "1000000", "1.00001", "1e2"],
  ...["1_0", "1,5", " 1", "1 ", "1\n", "٣", "０", "NaN", "Infinity"],
])("%j is refused", (text) => {
  expect(() => parsePrice(text)).toThrow(RangeError);
});

test.each([
  [0, "0.0000"],
  [1, "0.0001"],
  [-1, "-0.0001"],
  [185_000, "18.5000"],
  [MAX_PRICE_UNITS, "999999.9999"],
  [12_345_678_901_234_567_890n, "1234567890123456.7890"],
])("%s is written as %s", (value, text) => {
  expect(formatUnits(value)).toBe(text);
});

test("sums do not depend on the order, and add up", () => {
  const line = fc.record({ unitPrice: units.map(formatUnits), quantity: fc.integer({ min: 0, max: 2_147_483_647 }) });
  const asUnits = (text: string) => BigInt(text.replace(".", ""));
  fc.assert(
    fc.property(fc.array(line), fc.array(line), (a, b) => {
      expect(sumOfLines([...a, ...b])).toBe(sumOfLines([...b, ...a]));
      expect(asUnits(sumOfLines([...a, ...b]))).toBe(asUnits(sumOfLines(a)) + asUnits(sumOfLines(b)));
    }),
  );
  expect(sumOfLines([])).toBe("0.0000");
  expect(sumOfLines([{ unitPrice: "0.1000", quantity: 3 }])).toBe("0.3000");
});
