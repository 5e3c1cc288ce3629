/** The CLI with a real platform, as its user runs it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
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
  return new Promise((resolve) => {
    const options = { env: { ...environment(place), ...more }, ...(cwd && { cwd }) };
    const child = execFile(process.execPath, [CLI, ...place.placed(args)], options, (_error, out, err) => {
      resolve({ code: child.exitCode ?? -1, out, err });
    });
  });
}

/** Runs `hibernaut` with these words and `--json`. Returns what it printed; throws its error when that is nothing. */
export async function jsonCli(place: Place, args: string[], more: Record<string, string> = {}) {
  const { out, err } = await runCli(place, [...args, "--json"], { more });
  if (out === "") throw new Error(err);
  return JSON.parse(out);
}

/** Starts `hibernaut` with these words. The caller ends it. */
export function spawnCli(place: Place, args: string[]): ChildProcess {
  return spawn(process.execPath, [CLI, ...args], { env: environment(place), stdio: ["ignore", "pipe", "pipe"] });
}

/** What makes the CLI talk to the platform of the place. */
export function environment(place: Place): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HIBERNAUT_DATA_DIR: place.home,
    XDG_CONFIG_HOME: join(place.home, "cfg"),
    HIBERNAUT_APP: place.app,
  };
}
