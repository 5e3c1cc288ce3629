#!/usr/bin/env node
/**
 * Compiles the launcher to .build/hibernaut-jail, unless it is newer than its sources. Plain JavaScript for any Node from
 * 18 on, because it runs before anything is set up.
 *
 *   node packages/jail/build.mjs
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = import.meta.dirname ?? dirname(fileURLToPath(import.meta.url));
const SOURCES = join(HERE, "src");
const OUT = join(HERE, ".build/hibernaut-jail");
/** Static, because it starts in half the time, and because libraries could be changed below it. */
const FLAGS = "-std=c11 -O2 -static -s -Wall -Wextra -Wpedantic -Wconversion -Werror".split(" ");

const names = readdirSync(SOURCES).filter((name) => /\.[ch]$/.test(name));
const newest = Math.max(...[fileURLToPath(import.meta.url), ...names.map((name) => join(SOURCES, name))].map(changed));
if (changed(OUT) < newest) compile();

/** @param {string} path When a file was changed; 0 when there is none. */
function changed(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function compile() {
  mkdirSync(dirname(OUT), { recursive: true });
  const draft = `${OUT}.${process.pid}`;
  const files = names.filter((name) => name.endsWith(".c"));
  // Platforms that run may be starting it right now: they keep the old one.
  execFileSync(process.env.CC ?? "cc", [...FLAGS, "-o", draft, ...files], { cwd: SOURCES, stdio: "inherit" });
  renameSync(draft, OUT);
  console.log("compiled the launcher of the jail");
}
