/** A directory of a user who has installed one of our packages, and what it depends on. */
import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { makeNpmPackages } from "../../../../scripts/lib/package/npm.mjs";
import { tempFolder } from "../helpers/temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");

/** Packs the package and unpacks it where npm would; links to `dependencies` come from this repository. */
export async function userOf(name: "hibernaut" | "@hibernaut/client", dependencies: string[]): Promise<string> {
  const folder = await tempFolder("npm-user");
  const [packed = ""] = await makeNpmPackages(join(folder, "work"), folder, [name]);
  const to = join(folder, "node_modules", name);
  await mkdir(to, { recursive: true });
  await promisify(execFile)("tar", ["-xzf", packed, "-C", to, "--strip-components=1"]);
  for (const dependency of dependencies) {
    const link = join(folder, "node_modules", dependency);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(ROOT, "node_modules", dependency), link);
  }
  return folder;
}
