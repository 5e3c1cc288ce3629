/** Copies programs of this host, with the libraries that they load, to where another machine finds them. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Makes a tree with programs and the libraries that they load, and copies of further files, all at their own paths. */
export async function stage(tree: string, programs: readonly string[], files: readonly string[] = []): Promise<void> {
  for (const name of ["bin", "data", "dev", "mnt", "proc", "run", "sys", "tmp"])
    await mkdir(join(tree, name), { recursive: true });
  const paths = await Promise.all(programs.map(programPath));
  const libraries = await Promise.all([...paths, ...files.filter((path) => path.endsWith(".so"))].map(librariesOf));
  const all = new Set([...paths, ...libraries.flat()]);
  await run("cp", ["--dereference", "--parents", "--", ...all, tree]);
  if (files.length > 0) await run("cp", ["--parents", "--", ...new Set(files), tree]);
  // Scripts and the platform name programs, whichever directory this host has them in.
  for (const path of paths)
    if (dirname(path) !== "/bin" && !path.endsWith(".node")) await symlink(path, join(tree, "bin", basename(path)));
}

/** Finds a program of this host. Rejects when it is not installed. */
export async function programPath(name: string): Promise<string> {
  if (name.startsWith("/")) return name;
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is not installed. Run npm run setup -- --tests.`);
  return await realpath(found).then((path) => (basename(path) === name ? path : found));
}

async function librariesOf(path: string): Promise<string[]> {
  // A static program has none, and ldd fails.
  const { stdout } = await run("ldd", [path]).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map(([, library = ""]) => library);
}

/** Writes a program of the shell, a line for each step. */
export async function writeScript(path: string, steps: readonly string[]): Promise<void> {
  await writeFile(path, ["#!/bin/sh", ...steps, ""].join("\n"));
  await chmod(path, 0o755);
}
