/** Compiles the agent's C code, and the tests of it. A warning is an error. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const GUEST = join(import.meta.dirname, "..");
const WARNINGS = "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Werror".split(" ");
const SANITIZERS = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all".split(" ");

/** What was compiled already, by directory, flags and file: most programs share most of the agent. */
const objects = new Map<string, Promise<string>>();

function compileFile(folder: string, flags: string[], file: string): Promise<string> {
  const key = [folder, ...flags, file].join(" ");
  const known = objects.get(key);
  if (known !== undefined) return known;
  const object = join(folder, `${objects.size}.o`);
  const compiled = run("cc", [...WARNINGS, ...flags, "-Iagent", "-c", "-o", object, file], { cwd: GUEST }).then(
    () => object,
  );
  objects.set(key, compiled);
  return compiled;
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
  for (const file of files) parts.push(await compileFile(folder, flags, file));
  await run("cc", [...flags, ...linkFlags, "-o", program, ...parts], { cwd: GUEST });
  return program;
}

/** Files of the agent by their names, as in `"frame config"`. */
export function agentParts(names: string): string[] {
  return names.split(" ").map((name) => `agent/${name}.c`);
}

/** The parts of the agent that carry out tasks, and what those need. */
export const TASK_PARTS = "copy tar connect processes sockets fs entries replace watch user system frame config";
