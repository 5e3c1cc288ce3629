/** The CLI with a real platform, as its user runs it. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import type { Place } from "../../platform/test/helpers/served.ts";

const CLI = join(import.meta.dirname, "../bin/hibernaut.js");

export interface Run {
  code: number;
  out: string;
  err: string;
}

/**
 * Runs `hibernaut` with these words, for the app of the place; `cwd` is where the app file is, if there is one, and
 * `more` are variables of the environment.
 */
export function runCli(
  place: Place,
  args: string[],
  { cwd, more }: { cwd?: string; more?: Record<string, string> } = {},
): Promise<Run> {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: place.dataDir,
    XDG_CONFIG_HOME: join(place.dataDir, "cfg"),
    HIBERNAUT_APP: place.app,
    ...more,
  };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [CLI, ...args], { env, ...(cwd && { cwd }) }, (_error, out, err) => {
      resolve({ code: child.exitCode ?? -1, out, err });
    });
  });
}
