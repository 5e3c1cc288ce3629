/**
 * As much of vitest as the tests use that run in the outer machine, on Node's own test runner: vitest itself takes minutes
 * to start on an emulated machine that only interprets. Every time limit is multiplied by `HIBERNAUT_SLOW_FACTOR`.
 */
import { after, afterEach, before, beforeEach, describe as nodeDescribe, test as nodeTest } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { format } from "node:util";
import { slowed } from "../helpers/slow.ts";
import { ANY, type Matcher, matchers } from "./mini-expect.ts";

/** As in `vitest.config.ts`. */
const TEST_MS = 120_000;
const POLL_MS = 1000;
const POLL_EVERY_MS = 50;

type Work = () => unknown;
type Limit = number | { timeout?: number; interval?: number };
type Define = (name: string, one?: Work | Limit, other?: Work | Limit) => void;

/** Parts of the names of the tests that run in the file that is being loaded; all run if there is none. */
let chosen: readonly string[] = [];

/** Loads a file of tests as a suite of its own. */
export function file(name: string, only: readonly string[], load: () => void): void {
  void nodeDescribe(name, () => {
    chosen = only;
    load();
    chosen = [];
  });
}

const limitOf = (limit: Limit | undefined, usual: number) =>
  slowed(typeof limit === "number" ? limit : (limit?.timeout ?? usual));
const isWork = (value: unknown): value is Work => typeof value === "function";

const define: Define = (name, one, other) => {
  if (chosen.length > 0 && !chosen.some((part) => name.includes(part))) return;
  const [work, limit] = isWork(one) ? [one, other] : [other, one];
  const timeout = limitOf(isWork(limit) ? undefined : limit, TEST_MS);
  void nodeTest(name, { timeout }, async () => {
    try {
      if (isWork(work)) await work();
    } finally {
      for (const finish of finishing.splice(0).reverse()) await finish();
    }
  });
};

/** What the running test wants to be done after it. Tests run one after the other. */
const finishing: Work[] = [];
export const onTestFinished = (work: Work) => void finishing.push(work);

/** `test.each(rows)(name, work)`: a row that is an array has several arguments. */
function eachOf(rows: readonly unknown[], one: (name: string, work: Work, limit?: Limit) => void) {
  return (name: string, work: (...row: unknown[]) => unknown, limit?: Limit) => {
    for (const row of rows) {
      const values: unknown[] = Array.isArray(row) ? row : [row];
      const used = values.slice(0, name.match(/%[sij]/g)?.length ?? 0);
      one(format(name, ...used), () => work(...values), limit);
    }
  };
}

const skip = (name: string) => nodeTest(name, { skip: true });
const runIf = (condition: unknown) => (condition ? define : skip);
export const test = Object.assign(define, {
  each: (rows: readonly unknown[]) => eachOf(rows, define),
  runIf,
  skipIf: (condition: unknown) => runIf(!condition),
});

const suite = (name: string, work: Work) => void nodeDescribe(name, () => void work());
export const describe = Object.assign(suite, { each: (rows: readonly unknown[]) => eachOf(rows, suite) });

type Hook = (work: Work, limit?: Limit) => void;
const hook =
  (register: typeof before): Hook =>
  (work, limit) =>
    register(async () => void (await work()), { timeout: limitOf(limit, TEST_MS) });
export const beforeAll = hook(before);
export const afterAll = hook(after);
export const eachBefore = hook(beforeEach);
export const eachAfter = hook(afterEach);
export { eachAfter as afterEach, eachBefore as beforeEach };

/** Repeats `look` until it does not throw. Rejects with what it threw last. */
async function until<T>(look: () => T | Promise<T>, limit: Limit | undefined): Promise<T> {
  const end = performance.now() + limitOf(limit, POLL_MS);
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(POLL_EVERY_MS);
    }
  }
}

export const vi = {
  waitFor: until,
  waitUntil: async <T>(look: () => T | Promise<T>, limit?: Limit) =>
    until(async () => {
      const found = await look();
      if (!found) throw new Error("what is waited for did not happen");
      return found;
    }, limit),
};

/** Every matcher, used on what `get` returns. */
function deferred(change: (matcher: (actual: unknown) => void) => Promise<void>, message?: string) {
  const names = Object.keys(matchers(undefined)) as Matcher[];
  const asyncOne = (name: Matcher) =>
    [
      name,
      (...expected: unknown[]) =>
        change((actual) => (matchers(actual, message)[name] as (...all: unknown[]) => void)(...expected)),
    ] as const;
  return Object.fromEntries(names.map(asyncOne)) as Record<Matcher, (...expected: unknown[]) => Promise<void>>;
}

/** Every matcher that the tests use; another one fails as a function that is not there. */
function expectOf(actual: unknown, message?: string) {
  const rejected = deferred(async (check) => {
    const error = await Promise.resolve(actual).then(
      () => Promise.reject(new Error(message ?? "it should have been rejected")),
      (reason: unknown) => reason,
    );
    check(error);
  }, message);
  return { ...matchers(actual, message), rejects: rejected };
}

export const expect = Object.assign(expectOf, ANY, {
  poll: (look: () => unknown, limit?: Limit) => deferred((check) => until(async () => check(await look()), limit)),
});
