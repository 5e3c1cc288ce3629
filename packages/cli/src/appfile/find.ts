/** Which file is the app file. Small: every command that needs an app asks here. */
import { existsSync } from "node:fs";
import { join } from "node:path";

/** In this order: a project that moves here from Fly may have both. */
export const APP_FILES = ["hibernaut.toml", "fly.toml"] as const;

/** The app file of a folder, or undefined when it has none. */
export function findAppFile(folder: string): string | undefined {
  return APP_FILES.map((name) => join(folder, name)).find((file) => existsSync(file));
}
