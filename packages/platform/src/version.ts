/** The version of Hibernaut. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Returns the version in the platform's package.json. */
export async function productVersion(): Promise<string> {
  const text = await readFile(join(import.meta.dirname, "../package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
