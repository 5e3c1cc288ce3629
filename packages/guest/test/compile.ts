/** Compiles the agent's C code, and the tests of it. A warning is an error. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ifAbsent } from "@hibernaut/lib/absence";

const run = promisify(execFile);
const GUEST = join(import.meta.dirname, "..");
const WARNINGS = "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Werror".split(" ");
const SANITIZERS = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all".split(" ");

/** Objects that compiled without a warning, by what they are made from: a run of all tests needs most of them five times. */
const OBJECTS = join(GUEST, ".build/test-objects");
/** An object that no test used for this long belongs to sources that are gone. Milliseconds. */
const UNUSED_MS = 24 * 60 * 60_000;

/** What is the same for all objects: the headers, and the compiler. */
let common: Promise<string> | undefined;

async function readCommon(): Promise<string> {
  const folders = ["agent", "test"].map((name) => join(GUEST, name));
  const names = await Promise.all(
    folders.map(async (folder) => (await readdir(folder)).toSorted().map((name) => join(folder, name))),
  );
  const headers = names.flat().filter((name) => name.endsWith(".h"));
  const texts = await Promise.all(headers.map((name) => readFile(name, "utf8")));
  return [(await run("cc", ["--version"])).stdout, ...texts].join("\0");
}

async function deleteUnused(): Promise<void> {
  for (const name of await readdir(OBJECTS)) {
    const path = join(OBJECTS, name);
    const used = await stat(path).then(({ mtimeMs }) => mtimeMs, ifAbsent(0));
    if (used < Date.now() - UNUSED_MS) await rm(path, { force: true });
  }
}

/** The text of a source, and of the sources that it includes. */
async function readSource(file: string): Promise<string> {
  const text = await readFile(join(GUEST, file), "utf8");
  const included = [...text.matchAll(/^#include "(.*\.c)"$/gm)].map(([, name = ""]) => join(dirname(file), name));
  return [text, ...(await Promise.all(included.map(readSource)))].join("\0");
}

async function compileFile(flags: string[], file: string): Promise<string> {
  common ??= readCommon();
  const inputs = [await common, ...flags, file, await readSource(file)];
  const name = createHash("sha256").update(inputs.join("\0")).digest("hex");
  const object = join(OBJECTS, `${name}.o`);
  const now = new Date();
  // The absence of a file that another test deletes now is the same as that of one that was never there.
  const known = await utimes(object, now, now).then(() => true, ifAbsent(false));
  if (known) return object;
  await mkdir(OBJECTS, { recursive: true });
  const draft = join(OBJECTS, `${name}.${process.pid}.tmp`);
  await run("cc", [...WARNINGS, ...flags, "-Iagent", "-c", "-o", draft, file], { cwd: GUEST });
  await rename(draft, object);
  await deleteUnused();
  return object;
}

/** Makes a program of files of packages/guest, by default with the sanitizers, and returns its path. */
export async function compile(
  folder: string,
  name: string,
  files: readonly string[],
  { flags = SANITIZERS, linkFlags = [] }: { flags?: string[]; linkFlags?: readonly string[] } = {},
): Promise<string> {
  const program = join(folder, name);
  const parts: string[] = [];
  for (const file of files) parts.push(await compileFile(flags, file));
  await run("cc", [...flags, ...linkFlags, "-o", program, ...parts], { cwd: GUEST });
  return program;
}

/** Files of the agent by their names, as in `"frame config"`. */
export function agentParts(names: string): string[] {
  return names.split(" ").map((name) => `agent/${name}.c`);
}

/** The parts of the agent that carry out tasks, and what those need. */
export const TASK_PARTS = "copy tar connect processes sockets fs paths entries replace watch user system frame config";
