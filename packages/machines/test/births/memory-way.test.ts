import { expect, test } from "vitest";
import { wayOfMemory } from "../../src/births/memory-way.ts";

test.each([
  [{ borrows: true, clones: true }, "share"],
  [{ borrows: true, clones: false }, "share"],
  [{ borrows: false, clones: true }, "clone"],
  [{ borrows: false, clones: false }, "copy"],
] as const)("with %o, a machine is born with a memory by: %s", (means, way) => {
  expect(wayOfMemory(means)).toBe(way);
});
