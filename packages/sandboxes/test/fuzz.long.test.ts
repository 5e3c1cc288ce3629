import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { withstand } from "./fuzz.ts";

const REQUESTS = 12_000;
/** By then, every kind of request has been answered, so that what is loaded and compiled once is there. */
const WARM = 4000;
/** How much the heap may grow from then on, in bytes: destroyed sandboxes, a thousand of them by the end, are remembered. */
const ALLOWED_BYTES = 8 * 1024 * 1024;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

test.each([1, 2])("12,000 wild requests, and the memory stays, round %i", { timeout: 1_800_000 }, async (seed) => {
  let warm = 0;
  let grown = 0;
  await withstand(REQUESTS, seed, {
    least: 10,
    after(sent) {
      if (sent === WARM) warm = heapBytes();
      if (sent === REQUESTS) grown = heapBytes() - warm;
    },
  });
  expect(warm).toBeGreaterThan(0);
  expect(grown).toBeLessThan(ALLOWED_BYTES);
});
