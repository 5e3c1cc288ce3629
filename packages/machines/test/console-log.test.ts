/** The file that a guest's console is written to does not grow without a limit. */
import { open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readTail, tellingLine } from "../../hypervisor/src/qemu/failure.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { cutConsole, KEPT_CONSOLE_BYTES, MOST_CONSOLE_BYTES } from "../src/console-log.ts";

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}\n`).join("");

test("a file within the limit, or none, stays as it is", async () => {
  const path = join(await tempFolder(), "console.log");
  expect(await cutConsole(path)).toBe(false);
  await writeFile(path, lines(10));
  expect(await cutConsole(path)).toBe(false);
  expect(await readFile(path, "utf8")).toBe(lines(10));
});

test("a larger one keeps its last whole lines, and who appends to it continues after them", async () => {
  const path = join(await tempFolder(), "console.log");
  await using qemu = await open(path, "a");
  await qemu.write(lines(200_000));
  expect(await cutConsole(path)).toBe(true);
  await qemu.write("[9.9] Kernel panic - not syncing: the last line\n");
  const text = await readFile(path, "utf8");
  expect(text.length).toBeLessThanOrEqual(KEPT_CONSOLE_BYTES + 100);
  expect(text).toMatch(/^line \d+\n/);
  expect(text).toMatch(/line 199999\n\[9.9\] Kernel panic .*\n$/);
  expect(tellingLine(await readTail(path, MOST_CONSOLE_BYTES)), "an offset from before the cut is of no use").toContain(
    "the last line",
  );
});

test("one without any line is cut, too", async () => {
  const path = join(await tempFolder(), "console.log");
  await writeFile(path, Buffer.alloc(3 * MOST_CONSOLE_BYTES, "x"));
  expect(await cutConsole(path)).toBe(true);
  expect((await stat(path)).size).toBe(KEPT_CONSOLE_BYTES);
});
