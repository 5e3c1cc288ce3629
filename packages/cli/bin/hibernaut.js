#!/usr/bin/env node
import { existsSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";

const dist = new URL("../dist/", import.meta.url);
const program = new URL("hibernaut.js", dist);
if (existsSync(program)) {
  // Kept beside the program, so that it goes with it; older Node has no such cache.
  module.enableCompileCache?.(fileURLToPath(new URL("cache", dist)));
  await import(program.href);
} else {
  process.stderr.write("Error: Hibernaut is not built yet. Run `npm run setup`.\n");
  process.exitCode = 1;
}
