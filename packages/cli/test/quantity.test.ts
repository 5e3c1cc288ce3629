import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { acceptedForms, quantityArgument, readQuantity, type Unit } from "../src/quantity.ts";

describe("what is typed", () => {
  test.each([
    ["seconds", "90", 90],
    ["seconds", "90s", 90],
    ["seconds", "5m", 300],
    ["seconds", "1h30m", 5400],
    ["seconds", "2h", 7200],
    ["seconds", "1500ms", undefined],
    ["seconds", "0", undefined],
    ["seconds", "5 minutes", undefined],
    ["mb", "512", 512],
    ["mb", "512mb", 512],
    ["mb", "1gb", 1024],
    ["mb", "1.5GB", 1536],
    ["mb", "1025kb", undefined],
    ["gb", "2", 2],
    ["gb", "2gb", 2],
    ["gb", "2048mb", 2],
    ["gb", "1500mb", undefined],
    ["days", "7", 7],
    ["days", "7d", 7],
    ["days", "7h", undefined],
    [undefined, "7", 7],
    [undefined, "7mb", undefined],
    [undefined, "1.5", undefined],
    [undefined, "-1", undefined],
    [undefined, "", undefined],
  ] as const)("as %s, %j is %j", (unit, text, value) => {
    expect(readQuantity(text, { unit, minimum: 1 })).toBe(value);
  });

  test("what is refused is told the forms, with an example that is accepted", () => {
    expect(() => quantityArgument("lots", { unit: "mb", minimum: 1 })).toThrow(
      "`lots` is not valid. Use at least 1 MB, in whole megabytes, as in 512, 512mb or 1gb.",
    );
    expect(() => quantityArgument("25h", { unit: "seconds", minimum: 0, maximum: 86_400 })).toThrow(
      "`25h` is not valid. Use at least 0 seconds and at most 24h, in whole seconds or with the units s, m and h, as in 90, 90s, 5m or 1h30m.",
    );
    for (const unit of ["seconds", "mb", "gb", "days"] as const) {
      const [, examples = ""] = acceptedForms({ unit, minimum: 1 }).split(" as in ");
      for (const example of examples.replace(/\.$/, "").split(/, | or /))
        expect(readQuantity(example, { unit, minimum: 1 }), `${example} as ${unit}`).toBeGreaterThan(0);
    }
  });
});

const units = fc.constantFrom<Unit | undefined>("seconds", "mb", "gb", "days", undefined);

test("a plain number is itself, whatever it counts", () => {
  fc.assert(
    fc.property(units, fc.integer({ min: 1, max: 999_999_999 }), (unit, number) => {
      expect(readQuantity(String(number), { unit, minimum: 1 })).toBe(number);
    }),
  );
});

test("a time is the sum of its parts, a size its number of the unit", () => {
  const part = fc.nat(1000);
  fc.assert(
    fc.property(part, part, part, (hours, minutes, seconds) => {
      const read = readQuantity(`${hours}h${minutes}m${seconds}s`, { unit: "seconds", minimum: 0 });
      expect(read).toBe(hours * 3600 + minutes * 60 + seconds);
      expect(readQuantity(`${hours}gb`, { unit: "mb", minimum: 0 })).toBe(hours * 1024);
      expect(readQuantity(`${hours * 1024}MiB`, { unit: "gb", minimum: 0 })).toBe(hours);
    }),
  );
});

test("nothing else throws, and nothing is read as less than the least", () => {
  fc.assert(
    fc.property(units, fc.string(), fc.nat(100), (unit, text, minimum) => {
      const value = readQuantity(text, { unit, minimum });
      if (value !== undefined) {
        expect(Number.isInteger(value)).toBe(true);
        expect(value).toBeGreaterThanOrEqual(minimum);
      }
    }),
  );
});
