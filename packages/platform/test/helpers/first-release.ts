/** Version 0.1, the form of Hibernaut whose data directories must still open: its code, taken from the history. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { HibernautClient } from "@hibernaut/client";
import { ownPlatform } from "./platform-process.ts";
import { openTempFolder } from "./temp.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const COMMIT = "52aedcd9017cd8bce2f039c780f7e443c8745c0f";
const KEPT_BUNDLE = join(ROOT, ".build/first-release-bundle");
const run = promisify(execFile);

/** Its platform without its CLI, which would have to be built. Says where it answers. */
const SERVE = `
import { serve } from "../src/server.ts";
import { readSettings } from "../src/settings.ts";
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const onReady = ({ apiUrl, proxyUrl, token }) => console.log(JSON.stringify({ apiUrl, proxyUrl, token }));
await serve({ settings: readSettings(process.env), signal: stop.signal, onReady });
process.exit(0);
`;

/** A platform of version 0.1 that is running. */
export interface FirstPlatform {
  client: HibernautClient;
  proxyUrl: string;
  /** Shuts it down cleanly. Can be called twice. */
  stop(): Promise<void>;
}

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

  /** Whether the history has it: a shallow clone does not. */
  static async isHere(): Promise<boolean> {
    return run("git", ["cat-file", "-e", COMMIT], { cwd: ROOT }).then(
      () => true,
      () => false,
    );
  }

  /** Its guest bundle, with the kernel that was here when it was built. Built once for this clone, because it never changes. */
  async bundle(): Promise<string> {
    if (!existsSync(KEPT_BUNDLE)) {
      const built = await this.#buildBundle();
      await mkdir(dirname(KEPT_BUNDLE), { recursive: true });
      const draft = await mkdtemp(`${KEPT_BUNDLE}.tmp-`);
      await cp(built, draft, { recursive: true });
      await rename(draft, KEPT_BUNDLE).catch(async (error: unknown) => {
        await rm(draft, { recursive: true });
        // Another run may have been faster.
        if (!existsSync(KEPT_BUNDLE)) throw error;
      });
    }
    return KEPT_BUNDLE;
  }

  /** Builds its guest bundle with the kernel that is here already, and returns the directory. */
  async #buildBundle(): Promise<string> {
    const cache = join(ROOT, "packages/guest/.build/cache");
    const build = join(this.tree, "packages/guest/.build");
    if (existsSync(cache)) await cp(cache, join(build, "cache"), { recursive: true });
    await run(process.execPath, [join(this.tree, "packages/guest/build.mjs")]);
    return join(build, "bundle");
  }

  /** Starts its platform on a data directory, with these settings; resolves when it answers. */
  async serve(dataDir: string, settings: Record<string, string>): Promise<FirstPlatform> {
    const file = join(this.tree, "packages/platform/test/serve-once.ts");
    await writeFile(file, SERVE);
    const child = spawn(process.execPath, [file], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...ownPlatform(dataDir), ...settings },
    });
    const ended = once(child, "exit");
    const failed = ended.then(([code]) => Promise.reject(new Error(`version 0.1 ended with ${String(code)}`)));
    failed.catch(() => {}); // it ends in any case, and only while it starts that is a failure
    const [line] = await Promise.race([once(child.stdout, "data"), failed]);
    const { proxyUrl, ...api } = JSON.parse(String(line)) as { apiUrl: string; proxyUrl: string; token: string };
    const stop = async () => {
      child.kill("SIGTERM");
      await ended;
    };
    return { client: new HibernautClient(api), proxyUrl, stop };
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
