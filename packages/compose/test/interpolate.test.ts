/** Variables, as the compose specification has them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { InterpolationError, interpolate } from "../src/interpolate.ts";

const VARIABLES: Record<string, string> = { NAME: "shop", EMPTY: "", PORT: "80" };
const variables = (name: string) => VARIABLES[name];

test.each([
  ["$NAME", "shop"],
  ["${NAME}-1 ${PORT}", "shop-1 80"],
  ["${MISSING:-fallback}", "fallback"],
  ["${EMPTY:-fallback}", "fallback"],
  ["${EMPTY-fallback}", ""],
  ["${NAME:-fallback}", "shop"],
  ["${MISSING:-${NAME}:${PORT}}", "shop:80"],
  ["${MISSING-}", ""],
  ["${NAME:+yes}", "yes"],
  ["${EMPTY:+yes}", ""],
  ["${EMPTY+yes}", "yes"],
  ["${NAME:?must be set}", "shop"],
  ["pg_isready -U $${NAME}", "pg_isready -U ${NAME}"],
  ["$${NAME} costs $$5", "${NAME} costs $5"],
])("%s becomes %s", (text, expected) => {
  expect(interpolate(text, variables).text).toBe(expected);
});

test("one that is not set counts as empty, and is told", () => {
  expect(interpolate("a${MISSING}b$ALSO", variables)).toEqual({ text: "ab", unset: ["MISSING", "ALSO"] });
});

test.each([
  ["${MISSING:?set the password}", /MISSING is required: set the password/],
  ["${EMPTY:?}", /EMPTY is required/],
  ["${", /not a variable/],
  ["cost: $5", /Write \$\$/],
  ["${1}", /not a variable/],
  ["${NAME!x}", /not a variable/],
  [`${"${A:-".repeat(40)}x${"}".repeat(40)}`, /nested too deeply/],
])("%s is refused", (text, reason) => {
  expect(() => interpolate(text, variables)).toThrow(InterpolationError);
  expect(() => interpolate(text, variables)).toThrow(reason);
});

test("what has its dollar signs doubled is said as it is", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(interpolate(text.replaceAll("$", "$$$$"), variables)).toEqual({ text, unset: [] });
    }),
  );
});
