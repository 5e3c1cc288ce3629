/** Which services of a project start first, when not all can at once. */
import { setImmediate as moment } from "node:timers/promises";
import { expect, test } from "vitest";
import { chainsBehind, Turns } from "../src/compose/turns.ts";

const service = (name: string, ...dependsOn: string[]) => ({
  service: name,
  dependsOn: dependsOn.map((one) => ({ service: one, condition: "started" as const, required: true })),
});
const never = new AbortController().signal;

test("a service has as many behind it as wait for each other", () => {
  const apps = [service("mail"), service("db"), service("cache"), service("api", "db", "cache"), service("web", "api")];
  expect(Object.fromEntries(chainsBehind(apps))).toEqual({ mail: 0, db: 2, cache: 2, api: 1, web: 0 });
});

/** Work that is watched, and ends when it is told to. */
function watched(count: number) {
  const turns = new Turns(count);
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const begin = (name: string, rank: number, signal = never) =>
    turns.run(
      rank,
      () => {
        began.push(name);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.set(name, resolve);
        return promise;
      },
      signal,
    );
  return { began, begin, end: (name: string) => ends.get(name)?.() };
}

test("what others wait for comes first, also what could start only when another had ended", async () => {
  const { began, begin, end } = watched(1);
  const mail = begin("mail", 0);
  const db = begin("db", 2);
  const api = db.then(() => begin("api", 1));
  await moment();
  expect(began).toEqual(["db"]);
  end("db");
  await db;
  await moment();
  expect(began).toEqual(["db", "api"]);
  end("api");
  await api;
  await moment();
  end("mail");
  await mail;
});

test("one that gives up while it waits takes no turn from others", async () => {
  const { began, begin, end } = watched(1);
  const leave = new AbortController();
  const first = begin("first", 0);
  await moment();
  const second = begin("second", 0, leave.signal);
  leave.abort(new Error("Ctrl-C"));
  await expect(second).rejects.toThrow("Ctrl-C");
  end("first");
  await first;
  const third = begin("third", 0);
  await moment();
  await moment();
  expect(began).toEqual(["first", "third"]);
  end("third");
  await third;
});
