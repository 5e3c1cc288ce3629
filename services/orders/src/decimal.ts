/**
 * Money as whole ten-thousandths: 10 digits, 4 of them after the point, like `decimal(10,4)` in SQL.
 * A price fits a JavaScript number exactly in that unit; sums are left to BigInt, which has no largest value.
 */

/** Digits after the point. */
const SCALE = 4;
const ONE = 10_000;

/** `999999.9999` in ten-thousandths: the most that `decimal(10,4)` holds. */
export const MAX_PRICE_UNITS = 9_999_999_999;

/** A price as clients may write it: `18`, `18.5`, `18.5000`. No sign, no needless zero in front, no exponent. */
export const PRICE_PATTERN = "^(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})?$";

const PRICE = new RegExp(PRICE_PATTERN);

/** Ten-thousandths of a price: `"18.5"` is 185000. Throws a RangeError for what is no price. */
export function parsePrice(text: string): number {
  if (!PRICE.test(text)) throw new RangeError("not a price: 0 to 999999.9999 with at most four decimals");
  const [whole = "0", fraction = ""] = text.split(".");
  return Number(whole) * ONE + Number(fraction.padEnd(SCALE, "0"));
}

/** The canonical text of an amount in ten-thousandths: 185000 is `"18.5000"`. */
export function formatUnits(units: number | bigint): string {
  const digits = String(units < 0 ? -units : units).padStart(SCALE + 1, "0");
  return `${units < 0 ? "-" : ""}${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}

/** The canonical form of a price: `"18.5"` is `"18.5000"`. */
export function canonicalPrice(text: string): string {
  return formatUnits(parsePrice(text));
}

/** The exact sum of price times quantity, canonical: what the databases must agree with. */
export function sumOfLines(lines: Iterable<{ unitPrice: string; quantity: number }>): string {
  let units = 0n;
  for (const { unitPrice, quantity } of lines) units += BigInt(parsePrice(unitPrice)) * BigInt(quantity);
  return formatUnits(units);
}
