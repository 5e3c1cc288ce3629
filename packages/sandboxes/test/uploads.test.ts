/** Files that clients upload for builds: whole or not at all, within limits, and no longer than they are wanted. */
import { existsSync } from "node:fs";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { DISK_RESERVE_BYTES } from "../src/build/limits.ts";
import { type Uploader, Uploads } from "../src/build/uploads.ts";
import { failureOf } from "../src/failure.ts";

const hash = (digit: string) => digit.repeat(64);
const app: Uploader = { name: "shop", createdAt: "2026-01-01T00:00:00.000Z" };
const log = { info() {}, warn() {} };
const signal = new AbortController().signal;

async function uploads() {
  const folder = join(await tempFolder("uploads"), "uploads");
  const store = new Uploads(folder, { bytes: 1000, allBytes: 2500, count: 4 });
  const put = (digit: string, bytes: number, of = app) =>
    store.receive(of, hash(digit), Readable.from([Buffer.alloc(bytes, digit)]), signal);
  const there = async (...digits: string[]) => {
    const found = await Promise.all(digits.map((digit) => store.has(app, hash(digit))));
    return digits.filter((_, index) => found[index]).join("");
  };
  /** As if it had been used this many milliseconds ago. */
  const used = async (digit: string, ago: number) => {
    const at = new Date(Date.now() - ago);
    await utimes(join(folder, `shop-${Date.parse(app.createdAt)}`, hash(digit)), at, at);
  };
  return { folder, store, put, there, used };
}

test("one is kept as it came, for its own app only, and one of the same hash takes its place", async () => {
  const { store, put } = await uploads();
  expect(await store.has(app, hash("a"))).toBe(false);
  await put("a", 10);
  await put("a", 20);
  const read = await store.read(app, hash("a"));
  expect(read && (await buffer(read)).toString()).toBe("a".repeat(20));
  expect(await store.has({ ...app, createdAt: "2026-02-01T00:00:00.000Z" }, hash("a"))).toBe(false);
  expect(await store.read({ name: "blog", createdAt: app.createdAt }, hash("a"))).toBeUndefined();
  await expect(store.has(app, "../../secrets.key")).rejects.toThrow(/64 hexadecimal/);
});

test("one that is too large, or breaks off, leaves nothing", async () => {
  const { folder, store, put, there } = await uploads();
  expect(await put("a", 1001).catch(failureOf)).toMatchObject({ code: 413 });
  const gone = new AbortController();
  const broken = store.receive(app, hash("b"), new PassThrough(), gone.signal).catch((error: unknown) => error);
  gone.abort(new Error("the client is gone"));
  expect(await broken).toMatchObject({ message: "the client is gone" });
  expect(await there("a", "b")).toBe("");
  expect(await readdir(join(folder, `shop-${Date.parse(app.createdAt)}`))).toEqual([]);
});

test("what one was promised of the disk no other gets meanwhile, of whatever app", async () => {
  const folder = join(await tempFolder("uploads"), "uploads");
  const free = async () => DISK_RESERVE_BYTES + 1500;
  const store = new Uploads(folder, { bytes: 1000, allBytes: 2500, count: 4 }, free);
  const slow = new PassThrough();
  const first = store.receive(app, hash("a"), slow, signal);
  slow.write("beginning");
  await expect.poll(() => existsSync(folder)).toBe(true);
  const put = (bytes: number) =>
    store.receive({ ...app, name: "blog" }, hash("b"), Readable.from([Buffer.alloc(bytes)]), signal);
  expect(await put(600).catch(failureOf)).toMatchObject({ code: 413 });
  slow.end();
  await first;
  await put(600);
});

test("the oldest make room: when they are too many, or too large together", async () => {
  const { put, there, used } = await uploads();
  for (const [index, digit] of ["a", "b", "c", "d"].entries()) {
    await put(digit, 10);
    await used(digit, 10_000 - index);
  }
  await put("e", 10);
  expect(await there("a", "b", "c", "d", "e")).toBe("bcde");
  for (const digit of ["b", "c", "d"]) await used(digit, 10_000);
  await used("e", 1000);
  await put("f", 1000);
  await used("f", 500);
  await put("0", 1000);
  await put("1", 1000);
  expect(await there("e", "f", "0", "1")).toBe("01");
});

test("a sweep deletes what nobody wants, and what belongs to no app; a start, what was not received to its end", async () => {
  const { folder, store, put, there, used } = await uploads();
  const gone: Uploader = { name: "gone", createdAt: app.createdAt };
  await put("a", 10);
  await put("b", 10);
  await put("c", 10, gone);
  await used("a", 8 * 24 * 60 * 60_000);
  await store.sweep(() => [app]);
  expect(await there("a", "b")).toBe("b");
  expect(existsSync(join(folder, `gone-${Date.parse(app.createdAt)}`))).toBe(false);

  const own = join(folder, `shop-${Date.parse(app.createdAt)}`);
  await writeFile(join(own, `${hash("d")}.0123.tmp`), "half");
  await store.begin(() => [app], log);
  expect(await readdir(own)).toEqual([hash("b")]);
  const other = new Uploads(join(await tempFolder("none"), "none"));
  await other.begin(() => [app], log);
  await mkdir(join(folder, "shop-1"), { recursive: true });
  await store.begin(() => [], log);
  expect(await readdir(folder)).toEqual([]);
});
