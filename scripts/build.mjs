/**
 * Builds the CLI, and the platform that `hibernaut serve` runs, as one bundle in a few files, because a program of
 * hundreds of files starts slowly, and the dashboard. Writes the tables of docs/settings.md. Does not build what is newer
 * than everything it is made from.
 */
import { globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { withSettingTables } from "@hibernaut/settings/document";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
const output = join(root, "packages/cli/dist/hibernaut.js");
const sources = [
  ...globSync(["packages/*/src/**/*.ts", "packages/cli/bin/*.js"], {
    cwd: root,
  }),
  "packages/platform/package.json",
  "packages/cli/package.json",
  "package-lock.json",
  "scripts/build.mjs",
].map((file) => join(root, file));

writeSettingsDocument();
await import("../packages/dashboard/build.mjs");
if (isCurrent()) {
  console.log(`${relative(root, output)} is up to date`);
} else {
  await bundle();
  console.log(`built ${relative(root, output)} (${Math.round(statSync(output).size / 1024)} KB)`);
}

function writeSettingsDocument() {
  const file = join(root, "docs/settings.md");
  const before = readFileSync(file, "utf8");
  const after = withSettingTables(before);
  if (after !== before) writeFileSync(file, after);
}

function isCurrent() {
  const built = statSync(output, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return built > Math.max(...sources.map((file) => statSync(file).mtimeMs));
}

async function bundle() {
  const { version } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"));
  const { outputFiles } = await build({
    entryPoints: {
      hibernaut: join(root, "packages/cli/src/main.ts"),
      // What the program runs, for tests that run it in their process.
      run: join(root, "packages/cli/src/run.ts"),
      "unpack-image": join(root, "packages/images/src/flatten/main.ts"),
    },
    outdir: dirname(output),
    write: false,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    // Names stay as they are, for the stacks in the log; `serve` also maps them to the sources.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: "linked",
    sourcesContent: false,
    // It loads a native library that lies next to its files.
    external: ["better-sqlite3"],
    define: { HIBERNAUT_VERSION: JSON.stringify(version) },
    // CommonJS packages load node:events and other modules with `require`, and look for files with `__dirname`.
    banner: {
      js: 'import{createRequire as makeRequire}from"node:module";const require=makeRequire(import.meta.url),__dirname=import.meta.dirname;',
    },
    legalComments: "none",
    logLevel: "warning",
  });
  publish(outputFiles);
}

/**
 * Replaces the files one at a time, each by a rename, and the program itself last: someone may start the CLI, or build
 * it a second time, during a build.
 *
 * @param {import("esbuild").OutputFile[]} files
 */
function publish(files) {
  const folder = dirname(output);
  mkdirSync(folder, { recursive: true });
  for (const { path, contents } of files.toSorted((a, b) => Number(a.path === output) - Number(b.path === output))) {
    const draft = `${path}.${process.pid}.tmp`;
    writeFileSync(draft, contents);
    renameSync(draft, path);
  }
  const current = new Set(files.map(({ path }) => basename(path)));
  const old = readdirSync(folder).filter((name) => /\.js(\.map)?$/.test(name) && !current.has(name));
  // The cache has the code that Node compiled from the old files.
  for (const name of [...old, "cache"]) rmSync(join(folder, name), { recursive: true, force: true });
}
