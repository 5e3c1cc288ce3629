import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { cloneFile, copySparse, copySparseUntilAborted, createSparse, formatExt4, reserve } from "../src/disk-files.ts";
import { flush, flushSync, replaceFile } from "../src/durable.ts";
import { failureReason, run } from "../src/exec.ts";

const MB = 1024 * 1024;
const limit = { timeoutMs: 30_000 };

test("a copy of a sparse file has the same content and keeps the holes", async () => {
  const folder = await tempFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await createSparse(from, 8 * MB);
  await formatExt4(from, { journalMb: 1, ...limit });
  await writeFile(to, "an older file");
  await copySparse(from, to, limit);
  const { size, blocks, mode } = await stat(to);
  expect({ size, mode: mode & 0o777 }).toEqual({ size: 8 * MB, mode: 0o600 });
  expect(blocks * 512).toBeLessThan(4 * MB);
  expect((await readFile(to)).equals(await readFile(from))).toBe(true);
});

test("a small file is copied with its mode, in the place of what was there", async () => {
  const folder = await tempFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await writeFile(from, "small", { mode: 0o600 });
  await writeFile(to, "an older file, which is longer");
  await copySparseUntilAborted(from, to, new AbortController().signal);
  expect(await readFile(to, "utf8")).toBe("small");
  expect((await stat(to)).mode & 0o777).toBe(0o600);
});

test("a small file with holes is given all of its space, and keeps what is in it", async () => {
  const file = join(await tempFolder(), "file");
  await createSparse(file, MB);
  await writeFile(file, "begins so", { flag: "r+" });
  await reserve(file, MB, limit);
  const { size, blocks } = await stat(file);
  expect({ size, whole: blocks * 512 >= MB }).toEqual({ size: MB, whole: true });
  expect(await readFile(file, "utf8")).toBe("begins so".padEnd(MB, "\0"));
});

test("a copy of a file that does not exist fails, and so does a clone", async () => {
  const folder = await tempFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await expect(copySparse(from, to, limit)).rejects.toThrow("ENOENT");
  await expect(cloneFile(from, to)).rejects.toThrow("ENOENT");
});

test("a replaced file has the new text and mode, and no draft is left", async () => {
  const folder = await tempFolder();
  const file = join(folder, "file");
  await writeFile(file, "old");
  await writeFile(`${file}.tmp`, "left by a crash");
  await chmod(`${file}.tmp`, 0o644);
  await replaceFile(file, "new", { mode: 0o600 });
  expect(await readFile(file, "utf8")).toBe("new");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(["file"]);
});

test("a flush takes files and directories, and fails for a path that does not exist", async () => {
  const folder = await tempFolder();
  const file = join(folder, "file");
  await writeFile(file, "text");
  for (const path of [file, folder]) {
    await flush(path);
    flushSync(path);
  }
  await expect(flush(join(folder, "missing"))).rejects.toThrow("ENOENT");
  expect(() => flushSync(join(folder, "missing"))).toThrow("ENOENT");
});

test("the reason of a failure is what the program wrote to stderr, otherwise the error's message", async () => {
  const failure = await run("sh", ["-c", "echo 'disk full' >&2; exit 1"], limit).catch((error: unknown) => error);
  expect(failureReason(failure)).toBe("disk full");
  const missing = await run("no-such-program", [], limit).catch((error: unknown) => error);
  expect(missing).toMatchObject({ code: "ENOENT" });
  expect(failureReason(missing)).toContain("no-such-program");
});

test("a program that takes longer than its limit is killed", async () => {
  await expect(run("sleep", ["60"], { timeoutMs: 50 })).rejects.toMatchObject({ killed: true });
});
