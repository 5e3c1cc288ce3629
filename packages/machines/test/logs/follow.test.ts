import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { LogEntry } from "../../src/logs/entry.ts";
import { readLogs } from "../../src/logs/follow.ts";
import { collect, entriesOf, fixed, logIn, textsOf, written } from "./helpers.ts";

const line = (text: string) => Buffer.from(`${text}\n`);
const NEVER = new AbortController().signal;

describe("the last lines", () => {
  test("are limited to the requested number and streams", async () => {
    const log = logIn(await tempFolder("log"));
    for (let count = 0; count < 5000; count += 1) log.output(count % 2 ? "stderr" : "stdout", line(String(count)));
    await written(log);
    expect(await textsOf(log, { limit: 3 })).toEqual(["4997", "4998", "4999"]);
    expect(await textsOf(log, { limit: 2, streams: ["stdout"] })).toEqual(["4996", "4998"]);
    expect(await textsOf(log, { limit: 0 })).toEqual([]);
    expect(await textsOf(log)).toHaveLength(5000);
  });

  test("begin at the requested time", async () => {
    const log = logIn(await tempFolder("log"));
    log.platform("before");
    await written(log);
    const [before] = await entriesOf([log]);
    const after = Date.parse(before?.at ?? "") + 1;
    while (Date.now() < after) await setImmediate();
    log.platform("after");
    await written(log);
    expect(await textsOf(log, { sinceMs: after })).toEqual(["after"]);
    expect(await textsOf(log, { sinceMs: after - 1 })).toEqual(["before", "after"]);
    expect(await textsOf(log, { sinceMs: Date.now() + 60_000 })).toEqual([]);
  });

  test("of several machines are in chronological order", async () => {
    const folder = await tempFolder("log");
    const logs = ["a", "b", "c"].map((machine) => logIn(folder, { machine }));
    for (let count = 0; count < 90; count += 1) {
      logs[count % 3]?.platform(String(count));
      const now = Date.now();
      while (Date.now() === now) await setImmediate();
    }
    for (const log of logs) await written(log);
    const texts = (await entriesOf(logs, { limit: 50 })).map(({ text }) => Number(text));
    expect(texts).toEqual(Array.from({ length: 50 }, (_, index) => 40 + index));
  });
});

describe("a follower", () => {
  test("gets each line once, in order, while lines are written and files change", { timeout: 60_000 }, async () => {
    const log = logIn(await tempFolder("log"), { maxBytes: 512 * 1024 });
    const total = 20_000;
    let printed = 0;
    const print = (): number => {
      for (let count = 0; count < 20; count += 1) log.output("stdout", line(`${(printed += 1)} ${"x".repeat(60)}`));
      return printed;
    };
    // Several followers, each of which begins at another moment.
    const followers: { begun: number; read: Promise<LogEntry[]> }[] = [];
    while (print() < total) {
      if (printed % 4000 === 0)
        followers.push({ begun: printed, read: collect(readLogs(fixed(log), { limit: 10, follow: true }, NEVER)) });
      await written(log);
    }
    await log.end();
    expect(followers.length).toBeGreaterThan(3);
    for (const { begun, read } of followers) {
      const numbers = (await read).map(({ text }) => Number.parseInt(text, 10));
      expect(numbers[0]).toBeLessThanOrEqual(begun);
      expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
      expect(numbers.at(-1)).toBe(total);
    }
  });

  test("that reads too slowly is told that lines are missing, and takes no memory", async () => {
    const log = logIn(await tempFolder("log"), { maxBytes: 512 * 1024 });
    log.platform("first");
    await written(log);
    const blocks = readLogs(fixed(log), { limit: 10, follow: true }, NEVER);
    expect((await blocks.next()).value).toMatchObject([{ text: "first" }]);
    for (let count = 0; count < 200; count += 1) {
      log.output("stdout", Buffer.from(`${count} ${"x".repeat(1000)}\n`.repeat(20)));
      await written(log);
    }
    const ending = log.end();
    const rest = await collect(blocks);
    await ending;
    expect(rest[0]).toMatchObject({ stream: "platform", text: expect.stringMatching(/^Lines may be missing here/) });
    expect(rest.at(-1)?.text).toMatch(/^199 /);
    expect(rest.length).toBeLessThan(600);
  });

  test("learns of a line at once, and of the end", async () => {
    const log = logIn(await tempFolder("log"));
    const blocks = readLogs(fixed(log), { limit: 10, follow: true }, NEVER);
    const first = blocks.next();
    log.platform("one");
    expect((await first).value).toMatchObject([{ text: "one" }]);
    log.platform("destroy: stopped -> destroying.");
    const ending = log.end();
    expect((await blocks.next()).value).toMatchObject([{ text: "destroy: stopped -> destroying." }]);
    expect((await blocks.next()).done).toBe(true);
    await ending;
  });

  test("ends with the signal, whatever it is waiting for", async () => {
    const log = logIn(await tempFolder("log"));
    const leave = new AbortController();
    const reading = collect(readLogs(fixed(log), { limit: 10, follow: true }, leave.signal));
    log.platform("one");
    await written(log);
    leave.abort();
    expect((await reading).length).toBeLessThanOrEqual(1);
    const late = readLogs(fixed(log), { limit: 10, follow: true }, AbortSignal.abort());
    expect(await collect(late)).toHaveLength(1);
  });
});
