/**
 * Vitest's setup file: after the tests of a file, whatever Vitest replaced for them in the process (functions,
 * clocks, variables) is what it was, because the tests of other files run in the same process.
 */
import { afterAll, vi } from "vitest";

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});
