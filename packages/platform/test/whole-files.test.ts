/**
 * A file that is found under its final name is taken to be whole, so it has to be on the disk before it gets that name:
 * after a power cut, a name may be there and the content not.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ifAbsent } from "@hibernaut/lib/absence";
import { expect, test } from "vitest";
import { tempFolder } from "./helpers/temp.ts";

const run = promisify(execFile);
const SRC = join(import.meta.dirname, "../src");
const RECORDER = join(import.meta.dirname, "./helpers/flush-recorder.c");
const MACHINE = "5f541f9f4c0fdc";

/** Runs a program of the platform's parts, and returns the final names below `within` of files that were not flushed before. */
async function namedBeforeFlushed(folder: string, program: string, within = ""): Promise<string[]> {
  const recorder = join(folder, "recorder.so");
  const record = join(folder, "record");
  await run("cc", ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", recorder, RECORDER, "-ldl"]);
  await run(process.execPath, ["--input-type=module", "--eval", program], {
    // What Node itself keeps is of no machine.
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1", LD_PRELOAD: recorder, FLUSH_RECORD: record },
  });
  const lines = (await readFile(record, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  const faults: string[] = [];
  const flushed = new Set<string>();
  for (const [what, from = "", to = ""] of lines) {
    if (what === "flush") flushed.add(from);
    // One more name of the same content.
    if (what === "link" && flushed.has(from)) flushed.add(to);
    if (what !== "rename") continue;
    if (from.includes(within))
      for (const name of await filesIn(to)) if (!flushed.has(join(from, name))) faults.push(join(to, name));
    for (const path of flushed)
      if (path === from || path.startsWith(`${from}/`)) flushed.add(to + path.slice(from.length));
  }
  return faults;
}

/** A file's own name is "". None of what is at another place by now, whose turn comes with the rename to there. */
async function filesIn(path: string): Promise<string[]> {
  const found = await stat(path).catch(ifAbsent(undefined));
  if (found === undefined) return [];
  return found.isDirectory() ? readdir(path, { recursive: true }) : [""];
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

test("a template, and a machine that is born from it, are whole before they have their places", async () => {
  const folder = await tempFolder();
  const world = join(folder, "world");
  const program = `
    import { symlink } from "node:fs/promises";
    import { newWorld, runningMachine, startPlatform } from ${JSON.stringify(join(import.meta.dirname, "helpers/fake-world.ts"))};
    const platform = await startPlatform(await newWorld({ fill: (path) => symlink(path, ${JSON.stringify(world)}) }));
    const machine = await runningMachine(platform);
    const { signal } = new AbortController();
    await platform.templates.createOf("shop", { machine, name: "ready" }, signal);
    await platform.templates.bear("shop", "ready", { skipLaunch: true }, signal);
    await platform.forks.fork("shop", machine, { count: 1, skipLaunch: true }, signal);
    await platform.close();`;
  try {
    const named = await namedBeforeFlushed(folder, program, "/templates/");
    // Where it is, a machine has a log and a seal in time.
    expect(named.filter((path) => !/\/machines\/\w+\/(logs\b|.*\/seal\.json$)/.test(path))).toEqual([]);
  } finally {
    await rm(await realpath(world), { recursive: true });
  }
});
