import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type PageRange, rangesOf } from "@hibernaut/lib/page-ranges";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diskFolder } from "../../platform/test/helpers/temp.ts";
import { readAhead, recordHotPages } from "../src/qemu/hot-pages.ts";

const PAGE = 4096;
const PAGES = 4096;

let folder: string;
let memory: string;
beforeEach(async () => {
  folder = await mkdtemp(join(diskFolder(), "hibernaut-pages-"));
  memory = join(folder, "memory");
  await writeFile(memory, Buffer.alloc(PAGES * PAGE, 1), { flush: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const note = (text: string) => writeFile(join(folder, "hot-pages.json"), text);
/** Drops the memory from the page cache. */
const drop = () => execFileSync("dd", [`if=${memory}`, "iflag=nocache", "count=0", "status=none"]);
const cachedPages = () =>
  Number(execFileSync("fincore", ["--bytes", "--noheadings", "--output", "RES", memory], { encoding: "utf8" })) / PAGE;
const never = new AbortController().signal;

describe("pages become ranges", () => {
  test.each<[string, number[], PageRange[]]>([
    ["none", [], []],
    ["one", [7], [[7, 8]]],
    ["neighbors", [0, 1, 2], [[0, 3]]],
    ["a small gap is read too", [10, 19], [[10, 20]]],
    [
      "a larger gap is left out",
      [10, 20],
      [
        [10, 11],
        [20, 21],
      ],
    ],
  ])("%s", (_, pages, ranges) => {
    expect(rangesOf(pages)).toEqual(ranges);
  });
});

describe("reading ahead", () => {
  test("brings the recorded pages into the page cache", async ({ skip }) => {
    drop();
    skip(cachedPages() > 0, "the file system of the temporary directory is in memory");
    await note("[[0,64],[1024,2048]]");
    await readAhead(memory, never, async () => true);
    expect(cachedPages(), "inCache says that nothing has to be read").toBe(0);
    await readAhead(memory, never, async () => false);
    expect(cachedPages()).toBeGreaterThanOrEqual(64 + 1024);
  });

  test("stops when it is aborted, before it has read everything", async ({ skip }) => {
    drop();
    skip(cachedPages() > 0, "the file system of the temporary directory is in memory");
    await note(`[[0,${PAGES}]]`);
    await readAhead(memory, AbortSignal.abort(), async () => false);
    expect(cachedPages()).toBeLessThan(PAGES);
  });

  test.each([
    ["nothing was recorded", undefined],
    ["the record is not JSON", "[[0,1"],
    ["the record is something else", '{"pages":3}'],
    ["the record has pages beyond the end of the memory", "[[0,1],[9999999,99999999]]"],
  ])("does no harm when %s", async (_, text) => {
    if (text !== undefined) await note(text);
    await expect(readAhead(memory, never, async () => false)).resolves.toBeUndefined();
  });

  test("does no harm when the memory file no longer exists", async () => {
    await note("[[0,1]]");
    await rm(memory);
    await expect(readAhead(memory, never)).resolves.toBeUndefined();
  });
});

test("a process that has mapped another length than the memory's is not believed", async () => {
  // A program maps its own file in parts.
  const program = join(folder, "program");
  await copyFile("/bin/sleep", program);
  const child = spawn(program, ["600"], { stdio: "ignore" });
  await once(child, "spawn");
  try {
    await expect(recordHotPages(child.pid ?? 0, program)).rejects.toThrow(/has mapped \d+ bytes of a memory of \d+/);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

test("a process that has not mapped the memory has no hot pages, and one that has ended makes the record fail", async () => {
  await recordHotPages(process.pid, memory);
  await expect(readAhead(memory, never)).resolves.toBeUndefined();
  await expect(recordHotPages(2 ** 22 + 1, memory)).rejects.toThrow(/ENOENT/);
});
