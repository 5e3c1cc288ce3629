/**
 * A file that is found under its final name is taken to be whole, so it has to be on the disk before it gets that name:
 * after a power cut, a name may be there and the content not.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempFolder } from "./helpers/temp.ts";

const run = promisify(execFile);
const SRC = join(import.meta.dirname, "../src");
const RECORDER = join(import.meta.dirname, "./helpers/flush-recorder.c");
const MACHINE = "5f541f9f4c0fdc";

/** Runs a program of the platform's parts, and returns the final names of files that were not flushed before. */
async function namedBeforeFlushed(folder: string, program: string): Promise<string[]> {
  const recorder = join(folder, "recorder.so");
  const record = join(folder, "record");
  await run("cc", ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", recorder, RECORDER, "-ldl"]);
  await run(process.execPath, ["--input-type=module", "--eval", program], {
    env: { ...process.env, LD_PRELOAD: recorder, FLUSH_RECORD: record },
  });
  const lines = (await readFile(record, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  const faults: string[] = [];
  for (const [index, [what, from = "", to = ""]] of lines.entries()) {
    if (what !== "rename") continue;
    const flushed = new Set(lines.slice(0, index).flatMap(([kind, path]) => (kind === "flush" ? [path] : [])));
    for (const name of await filesIn(to)) if (!flushed.has(join(from, name))) faults.push(join(to, name));
  }
  return faults;
}

/** A file's own name is "". */
async function filesIn(path: string): Promise<string[]> {
  return (await stat(path)).isDirectory() ? readdir(path, { recursive: true }) : [""];
}

test("a guest bundle is copied whole: without it no machine that has it starts, and neither does the platform", async () => {
  const folder = await tempFolder();
  const built = join(folder, "built");
  await mkdir(built);
  for (const name of ["vmlinux", "initrd"]) await writeFile(join(built, name), name);
  await writeFile(join(built, "bundle.json"), '{"version":"0123456789abcdef","image":"vmlinux","protocol":3}');
  const program = `
    import { BundleStore } from ${JSON.stringify(join(SRC, "../../guest/src/bundles.ts"))};
    await BundleStore.open(${JSON.stringify(join(folder, "data"))}, ${JSON.stringify(built)});`;
  expect(await namedBeforeFlushed(folder, program)).toEqual([]);
});

test("the template of writable layers is made whole: every later machine gets a copy of it", async () => {
  const folder = await tempFolder();
  const program = `
    import { MachineFiles } from ${JSON.stringify(join(SRC, "../../machines/src/files.ts"))};
    const files = new MachineFiles(${JSON.stringify(join(folder, "data"))}, 64);
    await files.prepare("${MACHINE}");
    await files.freshLayer("${MACHINE}");`;
  expect(await namedBeforeFlushed(folder, program)).toEqual([]);
});
