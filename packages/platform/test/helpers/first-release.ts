/** Version 0.1, the form of Hibernaut whose data directories must still open: its code, taken from the history. */
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { openTempFolder } from "./temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const COMMIT = "52aedcd9017cd8bce2f039c780f7e443c8745c0f";
const run = promisify(execFile);

/** A copy of version 0.1 in a directory of its own. It uses the dependencies of this repository. */
export class FirstRelease {
  /** The copy. */
  readonly tree: string;
  readonly dispose: () => Promise<void>;

  private constructor(tree: string, dispose: () => Promise<void>) {
    this.tree = tree;
    this.dispose = dispose;
  }

  static async open(): Promise<FirstRelease> {
    const { path, dispose } = await openTempFolder("first");
    try {
      const script = 'git archive "$1" | tar -xC "$0"';
      await run("bash", ["-o", "pipefail", "-c", script, path, COMMIT], { cwd: ROOT }).catch((error: Error) => {
        throw new Error(
          `The code of version 0.1 is not in this clone (${error.message}). Run \`git fetch --unshallow\`.`,
        );
      });
      await linkDependencies(path);
      return new FirstRelease(path, dispose);
    } catch (error) {
      await dispose();
      throw error;
    }
  }

  /** Builds its guest bundle with the kernel that is here already, and returns the directory. */
  async buildBundle(): Promise<string> {
    const cache = join(ROOT, "packages/guest/.build/cache");
    const build = join(this.tree, "packages/guest/.build");
    if (existsSync(cache)) await cp(cache, join(build, "cache"), { recursive: true });
    await run(process.execPath, [join(this.tree, "packages/guest/build.mjs")]);
    return join(build, "bundle");
  }

  /** Runs a module in its code, in a process of its own, and returns what it prints. */
  async run(source: string, args: readonly string[]): Promise<string> {
    const file = join(this.tree, "packages/platform/test/run-once.ts");
    await writeFile(file, source);
    return (await run(process.execPath, [file, ...args])).stdout;
  }
}

/** Everything but the workspace's own packages, which are those of the copy. */
async function linkDependencies(tree: string): Promise<void> {
  const theirs = join(tree, "node_modules");
  await mkdir(join(theirs, "@hibernaut"), { recursive: true });
  for (const name of await readdir(join(ROOT, "node_modules")))
    if (!name.startsWith(".") && name !== "@hibernaut")
      await symlink(join(ROOT, "node_modules", name), join(theirs, name));
  for (const name of ["client", "platform"])
    await symlink(join(tree, "packages", name), join(theirs, "@hibernaut", name));
}
