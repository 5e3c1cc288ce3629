import { appendFile, readdir, readlink, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { entriesOf, logIn, MACHINE, textsOf, written } from "./helpers.ts";

const MB = 1024 * 1024;
const line = (text: string) => Buffer.from(`${text}\n`);

afterEach(() => void vi.useRealTimers());

test("lines of the app, of hooks and of the platform are in one order, with their times", async () => {
  const log = logIn(await tempFolder("log"));
  log.platform("start: created -> starting.");
  log.output("stdout", line("one"));
  log.output("stderr", line("two"));
  log.output("hooks", line("three"));
  await written(log);
  const entries = await entriesOf([log]);
  expect(entries).toMatchObject([
    { machine: MACHINE, stream: "platform", text: "start: created -> starting." },
    { stream: "stdout", text: "one" },
    { stream: "stderr", text: "two" },
    { stream: "hooks", text: "three" },
  ]);
  for (const entry of entries) expect(entry.at).toBe(new Date(entry.at).toISOString());
  expect(Object.keys(entries[0] ?? {})).toEqual(["at", "machine", "stream", "text"]);
});

test("a line that does not end appears after a second", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const log = logIn(await tempFolder("log"));
  log.output("stdout", Buffer.from("Password: "));
  await vi.advanceTimersByTimeAsync(900);
  expect(await textsOf(log)).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  await written(log);
  expect(await textsOf(log)).toEqual(["Password: "]);
});

test("times never go back, whatever the host's clock does, even after a restart", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-01-01T12:00:00Z") });
  const folder = await tempFolder("log");
  const log = logIn(folder);
  log.platform("noon");
  vi.setSystemTime(Date.parse("2026-01-01T11:00:00Z"));
  log.platform("an hour back");
  await log.close();
  const next = logIn(folder);
  next.platform("another platform");
  await written(next);
  expect((await entriesOf([next])).map(({ at }) => at)).toEqual(Array(3).fill("2026-01-01T12:00:00.000Z"));
});

/** The files below the directory that this process has open. */
async function openIn(folder: string): Promise<string[]> {
  const links = (await readdir("/proc/self/fd")).map((fd) => readlink(join("/proc/self/fd", fd)).catch(() => ""));
  return (await Promise.all(links)).filter((path) => path.startsWith(folder));
}

describe("on disk", () => {
  test("no file stays open when the log is closed, whenever its last line comes", async () => {
    const folder = await tempFolder("log");
    for (let moment = 0; moment < 40; moment += 1) {
      const log = logIn(folder);
      log.platform("the machine sleeps");
      await expect.poll(() => openIn(folder), { interval: 1 }).toHaveLength(1);
      log.rest();
      for (let turn = 0; turn < moment; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      log.platform("something happens to it");
      await log.close();
      expect(await openIn(folder), `after ${moment} turns`).toEqual([]);
    }
  });

  test("an app that never stops printing fills two files of limited size, and the newest lines are kept", async () => {
    const folder = await tempFolder("log");
    const log = logIn(folder, { maxBytes: MB });
    for (let count = 0; count < 300; count += 1) {
      log.output("stdout", Buffer.from(`${count} ${"x".repeat(1000)}\n`.repeat(20)));
      await written(log);
    }
    log.output("stdout", line("last"));
    await written(log);
    const files = await readdir(join(folder, MACHINE));
    expect(files).toHaveLength(2);
    for (const file of files) expect((await stat(join(folder, MACHINE, file))).size).toBeLessThanOrEqual(MB / 2);
    const texts = await textsOf(log);
    expect(texts.at(-1)).toBe("last");
    expect(texts.length).toBeGreaterThan(200);
    expect(texts.slice(0, -1).map((text) => Number.parseInt(text, 10))).toEqual(
      texts.slice(0, -1).map((_, index, all) => 299 - Math.floor((all.length - 1 - index) / 20)),
    );
  });

  test("the next platform continues the same file, and tolerates a line that was cut short", async () => {
    const folder = await tempFolder("log");
    const log = logIn(folder);
    log.platform("one");
    log.platform("two");
    await log.close();
    const file = join(folder, MACHINE, "1.ndjson");
    await truncate(file, (await stat(file)).size - 10);
    const next = logIn(folder);
    next.platform("three");
    await written(next);
    expect(await textsOf(next)).toEqual(["one", "three"]);
    expect(await readdir(join(folder, MACHINE))).toEqual(["1.ndjson"]);
  });

  test("anything that is not a line is skipped, however long it is", async () => {
    const folder = await tempFolder("log");
    const log = logIn(folder);
    log.platform("one");
    await log.close();
    const junk = `not json\n{"at":1}\nnull\n${"x".repeat(300_000)}\n\n`;
    await appendFile(join(folder, MACHINE, "1.ndjson"), junk);
    const next = logIn(folder);
    next.platform("two");
    await written(next);
    expect(await textsOf(next)).toEqual(["one", "two"]);
    expect(await textsOf(next, { limit: 1 })).toEqual(["two"]);
  });

  test("the longest line is read back whole", async () => {
    const log = logIn(await tempFolder("log"));
    const longest = "\u0001".repeat(16_384);
    for (let count = 0; count < 3; count += 1) log.output("stdout", line(longest));
    log.output("stdout", line("end"));
    await written(log);
    expect(await textsOf(log)).toEqual([longest, longest, longest, "end"]);
    expect(await textsOf(log, { limit: 2 })).toEqual([longest, "end"]);
  });
});

/** Only a fault reaches it: reading 30,000 lines takes a while on a busy host. */
const BUSY_MS = 30_000;

describe("a slow disk", () => {
  test("holds up nothing: lines are dropped, counted and reported", async () => {
    const ready = Promise.withResolvers<void>();
    const folder = await tempFolder("log");
    const log = logIn(folder);
    const slow = logIn(folder, { machine: "slow", prepare: () => ready.promise });
    for (let count = 0; count < 30_000; count += 1) slow.output("stdout", line(`${count} ${"x".repeat(100)}`));
    log.platform("makes no directory for the other");
    const { mkdir } = await import("node:fs/promises");
    await mkdir(slow.folder);
    ready.resolve();
    await vi.waitFor(async () => expect((await textsOf(slow)).at(-1)).toMatch(/lines were lost/), BUSY_MS);
    const texts = await textsOf(slow);
    const kept = texts.filter((text) => text.includes("x"));
    const lost = Number(/^(\d+) lines were lost: the disk is full, or too slow/.exec(texts.at(-1) ?? "")?.[1]);
    expect(kept.length + lost).toBe(30_000);
    expect(kept.map((text) => Number.parseInt(text, 10))).toEqual(kept.map((_, index) => index));
    slow.output("stdout", line("after"));
    await written(slow);
    expect((await textsOf(slow)).at(-1)).toBe("after");
    await log.close();
  });

  test("that fails only loses what it did not accept", async () => {
    const folder = await tempFolder("log");
    let full = true;
    const log = logIn(folder, {
      prepare: async () => {
        if (full) throw new Error("no space left on device");
        await (await import("node:fs/promises")).mkdir(join(folder, MACHINE));
      },
    });
    log.output("stdout", Buffer.from("a\nb\n"));
    await vi.waitFor(() => expect(full).toBe(true));
    await written(log);
    full = false;
    log.output("stdout", line("c"));
    await written(log);
    expect(await textsOf(log)).toEqual([expect.stringMatching(/^2 lines were lost/), "c"]);
  });
});

describe("output that was lost", () => {
  const LOST = /^(\d+) bytes of output were lost/;

  test("is what the guest printed and nobody received", async () => {
    const log = logIn(await tempFolder("log"));
    log.printed(0);
    log.output("stdout", line("four"));
    log.printed(5);
    log.output("stdout", Buffer.from("begins"));
    log.printed(111);
    log.output("stdout", line("another"));
    log.printed(119);
    await written(log);
    expect(await textsOf(log)).toEqual(["four", "begins", expect.stringMatching(/^100 bytes of output/), "another"]);
  });

  test("is known across platforms, including incomplete lines", async () => {
    const folder = await tempFolder("log");
    const log = logIn(folder);
    log.output("stdout", Buffer.from("one\ntw"));
    await vi.waitFor(async () => expect(await textsOf(log)).toEqual(["one"]));
    // The platform is killed: the two bytes that it held are gone, and so are ten that it never read.
    const next = logIn(folder);
    next.printed(4 + 2 + 10);
    next.output("stderr", line("three"));
    next.printed(22);
    await written(next);
    expect(await textsOf(next)).toEqual(["one", expect.stringMatching(/^12 bytes/), "three"]);
    await log.close();
  });

  test("is not what an earlier guest printed", async () => {
    const log = logIn(await tempFolder("log"));
    log.output("stdout", line("old guest"));
    log.newGuest();
    log.printed(0);
    log.output("stdout", line("new"));
    log.printed(4);
    await written(log);
    expect((await textsOf(log)).filter((text) => LOST.test(text))).toEqual([]);
  });
});

test("a log whose directory disappears at any moment causes no error, and does not create it again after its end", async () => {
  const folder = await tempFolder("log");
  const log = logIn(folder);
  log.platform("one");
  await written(log);
  await rm(log.folder, { recursive: true });
  log.output("stdout", line("two"));
  await log.end();
  await rm(log.folder, { recursive: true, force: true });
  log.output("stdout", line("three"));
  log.flush();
  log.rest();
  await log.close();
  expect(await readdir(folder)).toEqual([]);
});
