/**
 * As much of vitest as the conformance suite uses, on Node's own test runner: vitest itself takes minutes to start on an
 * emulated machine that only interprets.
 */
import assert from "node:assert";
import { after, afterEach, before, describe, test } from "node:test";

export { after as afterAll, afterEach, before as beforeAll, describe, test };

type Check = (...expected: never[]) => unknown;

function matchers(actual: unknown, message: string | undefined) {
  return {
    toBe: (expected: unknown) => assert.strictEqual(actual, expected, message),
    toEqual: (expected: unknown) => assert.deepEqual(actual, expected, message),
    toMatchObject: (expected: object) => assert.partialDeepStrictEqual(actual, expected, message),
    toBeUndefined: () => assert.strictEqual(actual, undefined, message),
    toBeLessThan: (limit: number) =>
      assert.ok((actual as number) < limit, message ?? `${String(actual)} is not below ${limit}`),
    toBeGreaterThan: (limit: number) =>
      assert.ok((actual as number) > limit, message ?? `${String(actual)} is not above ${limit}`),
  } satisfies Record<string, Check>;
}

/** Every matcher that the suite uses; another one fails as a function that is not there. */
export function expect(actual: unknown, message?: string) {
  const toThrow = (expected = /(?:)/) =>
    assert.rejects(actual as Promise<unknown>, (error) => {
      assert.match(String(error), expected);
      return true;
    });
  return { ...matchers(actual, message), rejects: { toThrow } };
}
