#!/usr/bin/env node
/**
 * Compiles the launcher to .build/hibernaut-jail, and what it can load into a program, unless they are newer than their
 * sources. Plain JavaScript for any Node from 18 on, because it runs before anything is set up.
 *
 *   node packages/jail/build.mjs
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = import.meta.dirname ?? dirname(fileURLToPath(import.meta.url));
const SOURCES = join(HERE, "src");
const OUT = join(HERE, ".build");
const FLAGS = "-std=c11 -O2 -s -Wall -Wextra -Wpedantic -Wconversion -Werror".split(" ");

/** Static, because it starts in half the time, and because libraries could be changed below it. */
build("hibernaut-jail", SOURCES, ["-static"]);
build("read-only.so", join(SOURCES, "preload"), ["-shared", "-fPIC"]);

/** @param {string} name @param {string} folder of the sources @param {string[]} flags */
function build(name, folder, flags) {
  const sources = readdirSync(folder).filter((each) => /\.[ch]$/.test(each));
  const paths = [fileURLToPath(import.meta.url), ...sources.map((each) => join(folder, each))];
  const out = join(OUT, name);
  if (changed(out) < Math.max(...paths.map(changed))) compile(out, folder, sources, flags);
}

/** @param {string} path When a file was changed; 0 when there is none. */
function changed(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** @param {string} out @param {string} folder @param {string[]} sources @param {string[]} flags */
function compile(out, folder, sources, flags) {
  mkdirSync(dirname(out), { recursive: true });
  const draft = `${out}.${process.pid}`;
  const files = sources.filter((name) => name.endsWith(".c"));
  // Platforms that run may be starting it right now: they keep the old one.
  execFileSync(process.env.CC ?? "cc", [...FLAGS, ...flags, "-o", draft, ...files], { cwd: folder, stdio: "inherit" });
  renameSync(draft, out);
  console.log(`compiled ${basename(out)} of the jail`);
}
