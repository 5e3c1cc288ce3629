import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A temporary folder that ends itself: `await using folder = await openTempFolder()`. */
export interface TempFolder extends AsyncDisposable {
  path: string;
  /** Removes the folder and all in it. Fine to call twice. */
  dispose(): Promise<void>;
}

/**
 * A folder the caller removes, for hooks:
 *
 * @example
 * beforeAll(async () => { folder = await openTempFolder(); });
 * afterAll(() => folder.dispose());
 */
export async function openTempFolder(name = "test"): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), `hibernaut-${name}-`));
  const dispose = () => rm(path, { recursive: true, force: true });
  return { path, dispose, [Symbol.asyncDispose]: dispose };
}

/** A folder for the running test; it is gone when the test has finished, however that went. */
export async function tempFolder(name?: string): Promise<string> {
  const folder = await openTempFolder(name);
  onTestFinished(folder.dispose);
  return folder.path;
}
