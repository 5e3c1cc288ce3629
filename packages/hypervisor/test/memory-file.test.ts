/** The space of a guest's memory is reserved before the guest starts. */
import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { qemuLimits } from "../src/qemu/limits.ts";
import { makeMemoryFile } from "../src/qemu/memory-file.ts";

let folder: string;
beforeEach(async () => {
  folder = await tempFolder("memory-file");
});
afterEach(() => vi.unstubAllEnvs());

/** Puts a `fallocate` before the host's. */
async function withFallocate(script: string): Promise<void> {
  const path = join(folder, "bin", "fallocate");
  await mkdir(join(folder, "bin"));
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  vi.stubEnv("PATH", `${join(folder, "bin")}:${process.env["PATH"]}`);
}

test("all of it is there, and none of it has to be found later", async () => {
  const path = join(folder, "memory");
  await makeMemoryFile(path, 8, { reserveMs: 30_000 });
  const { size, blocks } = await stat(path);
  expect([size, blocks * 512 >= size]).toEqual([8 * 1024 * 1024, true]);
});

test("a disk that is full is told as such, and nothing is left of the file", async () => {
  await withFallocate("echo 'fallocate: fallocate failed: No space left on device' >&2; exit 1");
  const made = makeMemoryFile(join(folder, "memory"), 8, { reserveMs: 30_000 });
  await expect(made).rejects.toThrow(
    /^There is no room for 8 MB of guest memory at .*No space left.*Free some disk space/,
  );
  expect(await readdir(folder)).toEqual(["bin"]);
});

test("a host that is too slow is not told to free space it has, but how to get more time", async () => {
  await withFallocate("exec sleep 600");
  const made = makeMemoryFile(join(folder, "memory"), 8, { reserveMs: 100 });
  await expect(made).rejects.toThrow(
    /^Reserving 8 MB for guest memory at .* took longer than 0\.1 s\. .*HIBERNAUT_SLOW_FACTOR/,
  );
  expect(await readdir(folder)).toEqual(["bin"]);
  expect(qemuLimits({ qemuTimeoutMs: 10_000, slowFactor: 20 }).reserveMs).toBe(600_000);
});
