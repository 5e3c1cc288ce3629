/**
 * Builds the dashboard's pages in `dist`, each file also compressed, unless they are newer than everything that they are
 * made from.
 *
 *   node packages/dashboard/build.mjs
 */
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const HERE = import.meta.dirname;
const ROOT = join(HERE, "../..");
const OUT = join(HERE, "dist");
const PAGE = join(OUT, "index.html");
/** Too small to gain anything. */
const LEAST_BYTES = 512;

const sources = [
  ...globSync(["packages/dashboard/{src/**/*,index.html,vite.config.ts,build.mjs,package.json}"], { cwd: ROOT }),
  ...globSync("packages/client/src/**/*.ts", { cwd: ROOT }),
  "package-lock.json",
].map((file) => join(ROOT, file));

if (isCurrent()) console.log("packages/dashboard/dist is up to date");
else await bundle();

function isCurrent() {
  const built = statSync(PAGE, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return built > Math.max(...sources.map((file) => statSync(file).mtimeMs));
}

async function bundle() {
  // Loading it takes longer than to see that there is nothing to do.
  const { build } = await import("vite");
  const draft = `${OUT}.${process.pid}.tmp`;
  try {
    await build({ configFile: join(HERE, "vite.config.ts"), build: { outDir: draft, emptyOutDir: true } });
    compress(draft);
    publish(draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  const bytes = readdirSync(join(OUT, "assets"))
    .filter((name) => name.endsWith(".gz"))
    .reduce((sum, name) => sum + statSync(join(OUT, "assets", name)).size, 0);
  console.log(`built packages/dashboard/dist (${Math.round(bytes / 1024)} KB compressed)`);
}

/** @param {string} draft */
function compress(draft) {
  for (const name of globSync("**/*.{html,js,css,svg}", { cwd: draft })) {
    const file = join(draft, name);
    const text = readFileSync(file);
    if (text.length < LEAST_BYTES) continue;
    writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    writeFileSync(`${file}.br`, brotliCompressSync(text, { params }));
  }
}

/**
 * Adds the new files, whose names have a fingerprint, then replaces the page that names them, then deletes the old files:
 * someone may load the dashboard during a build.
 *
 * @param {string} draft
 */
function publish(draft) {
  const assets = join(OUT, "assets");
  mkdirSync(assets, { recursive: true });
  const current = new Set(readdirSync(join(draft, "assets")));
  for (const name of current) {
    const unfinished = join(assets, `.${name}.${process.pid}`);
    cpSync(join(draft, "assets", name), unfinished);
    renameSync(unfinished, join(assets, name));
  }
  for (const name of ["index.html.br", "index.html.gz", "index.html"])
    if (statSync(join(draft, name), { throwIfNoEntry: false })) renameSync(join(draft, name), join(OUT, name));
  for (const name of readdirSync(assets)) if (!current.has(name)) rmSync(join(assets, name), { force: true });
}
