/** Files of tests as programs that run in the outer machine. */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { INSIDE, INTERPRETED, REPORTER } from "./outer-init.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const NESTED = join(import.meta.dirname, "../nested");
const NO_VITEST = join(NESTED, "mini-vitest.ts");

const BUNDLING = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node24",
  external: ["better-sqlite3"],
  banner: { js: 'import{createRequire}from"node:module";const require=createRequire(import.meta.url);' },
  legalComments: "none",
  logLevel: "warning",
} as const satisfies BuildOptions;

/**
 * By name of a program: its files of tests, by their paths in the repository, with parts of the names of the tests that
 * run; an empty list means all of them.
 */
export type Programs = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Puts each program into one file of `tree`, which is to be the outer machine's root. */
export async function bundlePrograms(tree: string, programs: Programs): Promise<void> {
  await writeFile(join(tree, INTERPRETED.path), INTERPRETED.source);
  await mkdir(join(tree, ROOT, INSIDE), { recursive: true });
  await copyFile(join(NESTED, "reporter.mjs"), join(tree, ROOT, REPORTER));
  for (const [name, files] of Object.entries(programs))
    await build({
      ...BUNDLING,
      stdin: { contents: programOf(files), resolveDir: ROOT, loader: "js" },
      outfile: join(tree, ROOT, INSIDE, `${name}.js`),
      alias: { vitest: NO_VITEST },
      plugins: [PLACES],
    });
}

/** Each file is loaded where it is called for, so that its hooks are its own. */
function programOf(files: Programs[string]): string {
  const load = ([path, only]: [string, readonly string[]]) =>
    `file(${JSON.stringify(path.replace(/^.*\/test\/|(\.qemu)?(\.test)?\.ts$/g, ""))}, ${JSON.stringify(only)}, () => require(${JSON.stringify(`./${path}`)}));`;
  return ['import { file } from "vitest";', ...Object.entries(files).map(load)].join("\n");
}

/** The parts of a program find what they need by where they were in the repository. */
const PLACES: Plugin = {
  name: "places",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.(ts|mjs|js)$/ }, async ({ path }) => {
      if (path.includes("/node_modules/")) return undefined;
      const contents = (await readFile(path, "utf8"))
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)))
        .replaceAll("import.meta.filename", JSON.stringify(path))
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path)));
      return { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
    }),
};
