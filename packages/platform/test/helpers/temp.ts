import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { DISK_VARIABLE } from "../../../../scripts/leftovers.mjs";

/** Where temporary files are on a disk: `npm test` has those of other tests in memory. */
export const diskFolder = () => process.env[DISK_VARIABLE] ?? tmpdir();

/** A temporary directory that removes itself: `await using folder = await openTempFolder()`. */
export interface TempFolder extends AsyncDisposable {
  path: string;
  /** Removes the directory and everything in it. Can be called twice. */
  dispose(): Promise<void>;
}

/** A directory that the caller removes. */
export async function openTempFolder(name = "test"): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), `hibernaut-${name}-`));
  const dispose = () => rm(path, { recursive: true, force: true });
  return { path, dispose, [Symbol.asyncDispose]: dispose };
}

/** A directory for the running test, which is removed when the test has finished. */
export async function tempFolder(name?: string): Promise<string> {
  const folder = await openTempFolder(name);
  onTestFinished(folder.dispose);
  return folder.path;
}

/** A directory for all tests of a file or group: there before hooks that are set later, and removed after them. */
export function useTempFolder(name?: string): { readonly path: string } {
  let path = "";
  let dispose = async () => {};
  beforeAll(async () => {
    ({ path, dispose } = await openTempFolder(name));
  });
  afterAll(() => dispose());
  return {
    get path() {
      return path;
    },
  };
}
