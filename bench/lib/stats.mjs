/** The statistics of all benches, so that a median in one result means the same as in the others. */

/**
 * The value in the middle; of an even number of samples, the mean of the two in the middle. NaN without samples.
 *
 * @param {readonly number[]} samples In any order.
 */
export function median(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2;
}

/**
 * The smallest sample that at least `part` of all samples don't exceed (nearest rank): always a value that was
 * measured. NaN without samples.
 *
 * @param {readonly number[]} samples In any order.
 * @param {number} part From 0 to 1: 0 is the minimum, 0.9 the 90th percentile, 1 the maximum.
 */
export function percentile(samples, part) {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

/**
 * @param {number} value
 * @param {number} [digits] Decimal places.
 */
export function round(value, digits = 2) {
  return Number(value.toFixed(digits));
}

/** @typedef {{ n: number, min: number, median: number, p90: number, max: number }} Summary */

/**
 * Median and spread, as every result records them.
 *
 * @param {readonly number[]} samples In any order.
 * @param {number} [digits] Decimal places of the median, which may lie between two samples.
 * @returns {Summary}
 */
export function summary(samples, digits = 2) {
  return {
    n: samples.length,
    min: percentile(samples, 0),
    median: round(median(samples), digits),
    p90: percentile(samples, 0.9),
    max: percentile(samples, 1),
  };
}

/** The same record with other values. @template T, U @param {Record<string, T>} record @param {(value: T) => U} change */
export function mapValues(record, change) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

/** Summaries of several kinds of samples, by their names. @param {Record<string, readonly number[]>} samples @param {number} [digits] */
export function summaries(samples, digits) {
  return mapValues(samples, (all) => summary(all, digits));
}
