/**
 * Tests that repeat something do it a few times in `npm test`, and often enough to be sure in `npm run test:long`. The
 * latter runs every test file that imports this module or `test/helpers/long.ts`.
 */
const LONG = process.env.HIBERNAUT_LONG_TESTS === "1";

/**
 * Returns the first value in `npm run test:long`, otherwise the second.
 *
 * @template T @param {T} long @param {T} usual @returns {T}
 */
export function longOr(long, usual) {
  return LONG ? long : usual;
}
