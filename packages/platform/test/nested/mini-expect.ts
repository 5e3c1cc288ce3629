/** The matchers of the tests that run in the outer machine, with the meaning that vitest gives them. */
import assert from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";

/** Stands for a value, like `expect.any(String)`. */
class Stands {
  readonly fits: (actual: unknown) => boolean;
  readonly what: string;

  constructor(what: string, fits: (actual: unknown) => boolean) {
    this.what = what;
    this.fits = fits;
  }

  [inspect.custom](): string {
    return this.what;
  }
}

export const ANY = {
  any: (type: { name: string }) =>
    new Stands(`any ${type.name}`, (actual) => {
      const known = { String: "string", Number: "number", Boolean: "boolean" }[type.name];
      return known === undefined ? actual instanceof (type as never) : typeof actual === known;
    }),
  stringMatching: (pattern: RegExp | string) =>
    new Stands(`a string like ${pattern}`, (actual) => typeof actual === "string" && new RegExp(pattern).test(actual)),
  stringContaining: (part: string) =>
    new Stands(`a string with ${part}`, (actual) => typeof actual === "string" && actual.includes(part)),
  arrayContaining: (parts: readonly unknown[]) =>
    new Stands(
      `an array with ${inspect(parts)}`,
      (actual) => Array.isArray(actual) && parts.every((part) => actual.some((one) => equal(one, part, false))),
    ),
  objectContaining: (part: object) =>
    new Stands(`an object with ${inspect(part)}`, (actual) => equal(actual, part, true)),
};

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));

/**
 * Whether they are equal. A key that is undefined is one that is not there. If `partial`, there may be more keys than
 * expected, and those that are expected must be there.
 */
export function equal(actual: unknown, expected: unknown, partial: boolean): boolean {
  if (expected instanceof Stands) return expected.fits(actual);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false;
    return expected.every((one, index) => equal(actual[index], one, partial));
  }
  if (!isPlain(expected)) return isDeepStrictEqual(actual, expected);
  if (typeof actual !== "object" || actual === null || Array.isArray(actual)) return false;
  const found = actual as Record<string, unknown>;
  if (!partial && !isPlain(actual)) return false;
  const keys = new Set([...Object.keys(expected), ...(partial ? [] : Object.keys(found))]);
  return [...keys].every((key) => (!partial || key in found) && equal(found[key], expected[key], partial));
}

export type Matcher = keyof ReturnType<typeof positive>;

function positive(actual: unknown, message: string | undefined) {
  const check = (holds: boolean, how: string, expected: unknown) => {
    const text = `${inspect(actual, { depth: 8 })} ${how} ${inspect(expected, { depth: 8 })}`;
    assert.ok(holds, message === undefined ? text : `${message}: ${text}`);
  };
  const text = actual instanceof Error ? actual.message : String(actual);
  return {
    toBe: (expected: unknown) => check(Object.is(actual, expected), "is not", expected),
    toEqual: (expected: unknown) => check(equal(actual, expected, false), "does not equal", expected),
    toMatchObject: (expected: object) => check(equal(actual, expected, true), "does not have", expected),
    toMatch: (pattern: RegExp) => check(pattern.test(text), "does not match", pattern),
    /** Of what was rejected. */
    toThrow: (pattern = /(?:)/) => check(pattern.test(text), "does not match", pattern),
    toContain: (part: never) => check((actual as string).includes(part), "does not contain", part),
    toHaveLength: (length: number) => check((actual as string).length === length, "does not have the length", length),
    toBeUndefined: () => check(actual === undefined, "is not", undefined),
    toBeNull: () => check(actual === null, "is not", null),
    toBeLessThan: (limit: number) => check((actual as number) < limit, "is not below", limit),
    toBeLessThanOrEqual: (limit: number) => check((actual as number) <= limit, "is above", limit),
    toBeGreaterThan: (limit: number) => check((actual as number) > limit, "is not above", limit),
  };
}

/** Every matcher, each of which throws unless it holds, and the opposite of each in `not`. */
export function matchers(actual: unknown, message?: string) {
  const all = positive(actual, message);
  const opposite = ([name, one]: [string, unknown]) => {
    const check = one as (...expected: unknown[]) => void;
    const not = (...expected: unknown[]) => {
      let holds = true;
      try {
        check(...expected);
      } catch {
        holds = false;
      }
      assert.ok(!holds, `${message ?? ""} ${inspect(actual)} not ${name} ${inspect(expected)}`);
    };
    return [name, not];
  };
  return { ...all, not: Object.fromEntries(Object.entries(all).map(opposite)) as typeof all };
}
