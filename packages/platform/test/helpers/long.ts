/**
 * Tests that do the same again and again do it a few times in `npm test`, and as often as it takes to be sure in
 * `npm run test:long`, which runs every file that imports this.
 */
const LONG = process.env["HIBERNAUT_LONG_TESTS"] === "1";

/** The first in `npm run test:long`, else the second. */
export function longOr<T>(long: T, usual: T): T {
  return LONG ? long : usual;
}
