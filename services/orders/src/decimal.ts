/**
 * Money as an integer of ten-thousandths: 10 digits, 4 of them after the point, like `decimal(10,4)` in SQL.
 * In this unit a price is an exact JavaScript number. Sums use BigInt, which has no largest value.
 */

const SCALE = 4;
const ONE = 10_000;

/** `999999.9999` in ten-thousandths, the largest value of `decimal(10,4)`. */
export const MAX_PRICE_UNITS = 9_999_999_999;

/** A price as clients may write it: `18`, `18.5`, `18.5000`, without sign, leading zeros and exponent. */
export const PRICE_PATTERN = "^(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})?$";

const PRICE = new RegExp(PRICE_PATTERN);

/** Converts a price to ten-thousandths: `"18.5"` is 185000. Throws a RangeError when the text is not a price. */
export function parsePrice(text: string): number {
  if (!PRICE.test(text)) throw new RangeError("not a price from 0 to 999999.9999 with up to four decimal places");
  const [whole = "0", fraction = ""] = text.split(".");
  return Number(whole) * ONE + Number(fraction.padEnd(SCALE, "0"));
}

/** Converts an amount in ten-thousandths to its canonical text: 185000 is `"18.5000"`. */
export function formatUnits(units: number | bigint): string {
  const digits = String(units < 0 ? -units : units).padStart(SCALE + 1, "0");
  return `${units < 0 ? "-" : ""}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}

/** Returns the canonical form of a price: `"18.5"` is `"18.5000"`. */
export function canonicalPrice(text: string): string {
  return formatUnits(parsePrice(text));
}

/** Returns the exact sum of price times quantity, in canonical form, with which both databases must agree. */
export function sumOfLines(lines: Iterable<{ unitPrice: string; quantity: number }>): string {
  let units = 0n;
  for (const { unitPrice, quantity } of lines) units += BigInt(parsePrice(unitPrice)) * BigInt(quantity);
  return formatUnits(units);
}
