/** Copies that are as large as a memory leave the disk some room. */
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { copyLeavingRoom } from "../src/roomy-copy.ts";

const MB = 1024 * 1024;
/** More than what is copied without a program, with holes. */
const BYTES = 4 * MB;
const SPARE = 64 * MB;
const never = new AbortController().signal;

let folder: string;
let from: string;
beforeEach(async () => {
  folder = await tempFolder("roomy-copy");
  from = join(folder, "memory");
  await writeFile(from, "content");
  await truncate(from, BYTES);
});

const to = (name: string) => join(folder, name);
const left = (bytes: number) => ({ free: async () => bytes });

test("a copy has all of its space from the beginning", async () => {
  await writeFile(to("copy"), "of an earlier try");
  await copyLeavingRoom(from, to("copy"), never);
  expect(await readFile(to("copy"))).toEqual(await readFile(from));
  const { blocks } = await stat(to("copy"));
  expect(blocks * 512).toBeGreaterThanOrEqual(BYTES);
});

test("nothing is begun that would take the last of the disk", async () => {
  await writeFile(to("copy"), "of an earlier try");
  const copied = copyLeavingRoom(from, to("copy"), never, left(SPARE + BYTES - 1));
  await expect(copied).rejects.toMatchObject({
    code: "ENOSPC",
    message: expect.stringMatching(/67 MB free, and 68 MB are needed/),
  });
  expect(await readdir(folder)).toEqual(["memory"]);
  await copyLeavingRoom(from, to("copy"), never, left(SPARE + BYTES));
});

test("copies that are made at the same time count for each other, and not afterwards", async () => {
  const room = left(SPARE + BYTES);
  const both = await Promise.allSettled(["one", "two"].map((name) => copyLeavingRoom(from, to(name), never, room)));
  expect(both.map(({ status }) => status)).toEqual(expect.arrayContaining(["rejected"]));
  await copyLeavingRoom(from, to("three"), never, room);
});

test("one that is called off leaves nothing", async () => {
  const off = new AbortController();
  const copied = copyLeavingRoom(from, to("copy"), off.signal, {
    free: async () => {
      off.abort(new Error("never mind"));
      return SPARE + BYTES;
    },
  });
  await expect(copied).rejects.toThrow("never mind");
  expect(await readdir(folder)).toEqual(["memory"]);
});
