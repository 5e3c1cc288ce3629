import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noteHotPages, type Range, rangesOf, readAhead } from "../../src/hypervisor/qemu/hot-pages.ts";

const PAGE = 4096;
const PAGES = 4096;

let folder: string;
let memory: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "hibernaut-pages-"));
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
  test.each<[string, number[], Range[]]>([
    ["none", [], []],
    ["one", [7], [[7, 8]]],
    ["neighbours", [0, 1, 2], [[0, 3]]],
    ["a small gap is read along", [10, 19], [[10, 20]]],
    [
      "a larger one is left out",
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
  test("brings what was noted into the page cache", async ({ skip }) => {
    drop();
    skip(cachedPages() > 0, "the file system of the temporary folder lives in memory");
    await note("[[0,64],[1024,2048]]");
    await readAhead(memory, never, async () => true);
    expect(cachedPages(), "it is said to be there").toBe(0);
    await readAhead(memory, never, async () => false);
    expect(cachedPages()).toBeGreaterThanOrEqual(64 + 1024);
  });

  test("ends when it is aborted, before it has read all", async ({ skip }) => {
    drop();
    skip(cachedPages() > 0, "the file system of the temporary folder lives in memory");
    await note(`[[0,${PAGES}]]`);
    await readAhead(memory, AbortSignal.abort(), async () => false);
    expect(cachedPages()).toBeLessThan(PAGES);
  });

  test.each([
    ["nothing was noted", undefined],
    ["the note is no JSON", "[[0,1"],
    ["the note is about something else", '{"pages":3}'],
    ["the note has pages that the memory has not", "[[0,1],[9999999,99999999]]"],
  ])("does no harm when %s", async (_, text) => {
    if (text !== undefined) await note(text);
    await expect(readAhead(memory, never, async () => false)).resolves.toBeUndefined();
  });

  test("does no harm when the memory is gone", async () => {
    await note("[[0,1]]");
    await rm(memory);
    await expect(readAhead(memory, never)).resolves.toBeUndefined();
  });
});

test("a process that has not mapped the memory needs none of it; one that is gone cannot be asked", async () => {
  await noteHotPages(process.pid, memory);
  await expect(readAhead(memory, never)).resolves.toBeUndefined();
  await expect(noteHotPages(2 ** 22 + 1, memory)).rejects.toThrow(/ENOENT/);
});
