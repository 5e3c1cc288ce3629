/** Vitest's global setup: tests run the program as it is built, so a change to its sources must reach it first. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

export function setup() {
  execFileSync(process.execPath, [join(import.meta.dirname, "../build.mjs")]);
}
