/** Finds the app file. Kept small, because every command that needs an app loads it. */
import { existsSync } from "node:fs";
import { join } from "node:path";

/** In this order: a project that moves from Fly may have both. */
export const APP_FILES = ["hibernaut.toml", "fly.toml"] as const;

/** The app file of a directory, or undefined. */
export function findAppFile(folder: string): string | undefined {
  return APP_FILES.map((name) => join(folder, name)).find((file) => existsSync(file));
}
