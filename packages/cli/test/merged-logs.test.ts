/** Lines of several services as one log. */
import type { LogEntry } from "@hibernaut/client";
import { expect, test } from "vitest";
import { followed, sorted } from "../src/compose/merged-logs.ts";

const line = (at: number, text: string) =>
  ({ at: `2026-01-31T12:00:0${at}.000Z`, machine: "m", stream: "stdout", text }) as LogEntry;

async function* of(...lines: LogEntry[]): AsyncGenerator<LogEntry> {
  yield* lines;
}

test("are in the order of their times", async () => {
  const sources = [
    { service: "web", entries: of(line(1, "a"), line(4, "d")) },
    { service: "db", entries: of(line(2, "b"), line(3, "c")) },
    { service: "quiet", entries: of() },
  ];
  const lines = await Array.fromAsync(sorted(sources), ({ service, text }) => `${service} ${text}`);
  expect(lines).toEqual(["web a", "db b", "db c", "web d"]);
});

test("followed, come as they are printed, also while others are silent, until all have ended or one fails", async () => {
  const silent = Promise.withResolvers<void>();
  const failing = async function* (): AsyncGenerator<LogEntry> {
    await silent.promise;
    yield line(2, "last words");
    throw new Error("the platform is away");
  };
  const many = Array.from({ length: 300 }, (_, at) => line(1, String(at)));
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { text } of followed([
      { service: "web", entries: of(...many) },
      { service: "db", entries: failing() },
    ])) {
      seen.push(text);
      if (seen.length === many.length) silent.resolve();
    }
  })();
  await expect(reading).rejects.toThrow("the platform is away");
  expect(seen.slice(0, many.length)).toEqual(many.map(({ text }) => text));
});
