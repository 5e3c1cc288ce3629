/** An app that prints more than its log takes. Time is the test's, so that each number follows from the rate. */
import { beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { logIn, textsOf, written } from "./helpers.ts";

const MB = 1024 * 1024;
const RATE = { bytesPerS: MB, linesPerS: 100 };
const LOST = /^(\d+) bytes of output were lost/;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  return () => void vi.useRealTimers();
});

const lostIn = (texts: string[]) => texts.reduce((sum, text) => sum + Number(LOST.exec(text)?.[1] ?? 0), 0);

test("short lines without end: some seconds' worth is kept, then what the rate allows, and the rest is told to the byte", async () => {
  const log = logIn(await tempFolder("log"), { rate: RATE });
  const chunk = Buffer.from("y\n".repeat(8192));
  const seconds = 4;
  for (let moment = 0; moment < seconds * 20; moment += 1) {
    log.output("stdout", chunk);
    await vi.advanceTimersByTimeAsync(50);
  }
  await written(log);
  const texts = await textsOf(log);
  const kept = texts.filter((text) => text === "y");
  expect(kept.length).toBeGreaterThanOrEqual(500);
  expect(kept.length).toBeLessThanOrEqual(500 + seconds * 100);
  expect(2 * kept.length + lostIn(texts)).toBe(seconds * 20 * chunk.length);
  const reports = texts.filter((text) => LOST.test(text));
  expect(reports.length).toBeLessThanOrEqual(seconds + 1);
  expect(reports[0]).toMatch(/bytes of output were lost: the log takes 1 MB or 100 lines per second from a machine\.$/);
});

test("long lines count by their bytes", async () => {
  const log = logIn(await tempFolder("log"), { rate: RATE });
  const line = Buffer.from(`${"x".repeat(1023)}\n`);
  for (let count = 0; count < 20; count += 1)
    log.output("stdout", Buffer.concat(Array.from({ length: 512 }, () => line)));
  await written(log);
  const texts = await textsOf(log);
  expect(texts.filter((text) => text.startsWith("x")).length).toBeLessThanOrEqual(500);
  expect(texts.filter((text) => text.startsWith("x")).length * 1024 + lostIn(texts)).toBe(10 * MB);
});

test("what a burst leaves is whole: no half of a line after the gap, and nothing of it in the other stream's line", async () => {
  const log = logIn(await tempFolder("log"), { rate: RATE });
  log.output("stderr", Buffer.from("a question? "));
  log.output("stdout", Buffer.from("line\n".repeat(501)));
  log.output("stderr", Buffer.from("lost, with half of"));
  log.output("stdout", Buffer.from("lost, too, and half of"));
  await vi.advanceTimersByTimeAsync(1000);
  log.output("stdout", Buffer.from(" this\nwhole\n"));
  log.output("stderr", Buffer.from(" that\nwhole, too\n"));
  await written(log);
  const texts = await textsOf(log);
  expect(texts.slice(500)).toEqual([
    "a question? ",
    expect.stringMatching(/^45 bytes of output were lost/),
    "whole",
    "whole, too",
    expect.stringMatching(/^12 bytes of output were lost/),
  ]);
});

test("a guest that says again and again that output was lost gets one line for it per second", async () => {
  const log = logIn(await tempFolder("log"), { rate: RATE });
  for (let count = 1; count <= 2000; count += 1) {
    log.output("stdout", Buffer.from("y"));
    log.printed(11 * count);
    if (count % 1000 === 0) await vi.advanceTimersByTimeAsync(1000);
  }
  await written(log);
  const texts = await textsOf(log);
  expect(texts.filter((text) => LOST.test(text)).length).toBeLessThanOrEqual(6);
  const kept = texts.filter((text) => text === "y");
  expect(kept.length).toBeLessThanOrEqual(700);
  expect(kept.length + lostIn(texts)).toBe(11 * 2000);
});

test("a loss that was not told when the platform was killed is told by the next one", async () => {
  const folder = await tempFolder("log");
  const log = logIn(folder, { rate: RATE });
  log.output("stdout", Buffer.from("line\n".repeat(600)));
  await vi.waitFor(async () => expect(await textsOf(log)).toHaveLength(500));
  const next = logIn(folder, { rate: RATE });
  next.printed(3000);
  await written(next);
  expect(lostIn(await textsOf(next))).toBe(500);
  await log.close();
});
