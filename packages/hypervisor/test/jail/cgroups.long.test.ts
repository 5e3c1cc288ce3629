/**
 * The same in an emulated machine with control groups of version 2, so that it is tried wherever these tests run: with the
 * kernel of machines, which is Debian's.
 */
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { packSmallApp } from "../../../platform/test/helpers/small-app/image.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { makeDisk, Outer } from "../../../platform/test/outer/outer.ts";
import { buildOuterFiles } from "../../../platform/test/outer/outer-disk.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const FILE = relative(ROOT, join(import.meta.dirname, "cgroups.qemu.test.ts"));
const LIMIT_MS = 20 * 60_000;

test("in a machine with control groups", { timeout: LIMIT_MS }, async () => {
  await packSmallApp();
  const folder = await tempFolder("cgroups");
  const files = await buildOuterFiles(folder, { programs: { cgroups: { [FILE]: [] } } });
  const disk = join(folder, "disk");
  await makeDisk(disk);
  const lines: string[] = [];
  const signal = AbortSignal.timeout(LIMIT_MS);
  const onLine = (line: string) => void lines.push(line);
  const code = await Outer.run(files, disk, folder, { program: "cgroups", onLine, signal });
  expect(code, lines.join("\n")).toBe(0);
  expect(lines.join("\n")).toMatch(/memory without end/);
});
