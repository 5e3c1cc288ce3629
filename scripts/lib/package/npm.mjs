/** The npm packages: `hibernaut`, the program, and `@hibernaut/client`, the library. */
import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../node.mjs";
import { run } from "../run.mjs";
import { copyProgram, programVersion, write } from "./program.mjs";

/** The oldest Node that the client is tested with. */
const CLIENT_NODE = 20;

/** What each package consists of: a function that lays its files out in a directory. */
const PACKAGES = { hibernaut: stageProgram, "@hibernaut/client": stageClient };

/**
 * Makes packages as `npm publish` would upload them, and returns their paths in the same order.
 *
 * @param {string} work an empty or absent directory
 * @param {string} out the directory that the packages go to
 * @param {readonly (keyof typeof PACKAGES)[]} [names] default: all
 * @returns {Promise<string[]>}
 */
export async function makeNpmPackages(work, out, names = ["hibernaut", "@hibernaut/client"]) {
  const packed = [];
  for (const name of names) {
    const directory = join(work, name);
    await PACKAGES[name](directory);
    // Nothing of the package's own scripts runs, and nothing is downloaded.
    const answer = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", out], {
      cwd: directory,
    });
    packed.push(join(out, JSON.parse(answer)[0].filename));
  }
  return packed;
}

/**
 * What the program needs besides its bundle, which cannot have native code in it: the version that the store is tested with.
 *
 * @returns {Promise<Record<string, string>>}
 */
export async function programDependencies() {
  const store = JSON.parse(await readFile(join(ROOT, "packages/store/package.json"), "utf8"));
  const version = store.dependencies["better-sqlite3"];
  if (version === undefined) throw new Error("packages/store no longer depends on better-sqlite3: say here who does");
  return { "better-sqlite3": version };
}

/** @param {string} directory */
async function stageProgram(directory) {
  await copyProgram(directory);
  const { license } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const cli = JSON.parse(await readFile(join(ROOT, "packages/cli/package.json"), "utf8"));
  const bin = "packages/cli/bin/hibernaut";
  await writeJson(join(directory, "package.json"), {
    name: "hibernaut",
    version: cli.version,
    description: "Apps in virtual machines that sleep: the platform and its command line",
    license,
    type: "module",
    bin: { hibernaut: bin, hib: bin },
    os: ["linux"],
    cpu: ["x64"],
    engines: { node: ">=24.18" },
    dependencies: await programDependencies(),
  });
  await cp(join(ROOT, "LICENSE"), join(directory, "LICENSE"));
  await cp(join(ROOT, "README.md"), join(directory, "README.md"));
}

/** @param {string} directory */
async function stageClient(directory) {
  const client = JSON.parse(await readFile(join(ROOT, "packages/client/package.json"), "utf8"));
  await mkdir(directory, { recursive: true });
  await build({
    entryPoints: [join(ROOT, "packages/client/src/index.ts")],
    outfile: join(directory, "dist/index.js"),
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    target: `node${CLIENT_NODE}`,
    legalComments: "none",
  });
  await build({
    entryPoints: [join(ROOT, "packages/client/src/browser.ts")],
    outfile: join(directory, "dist/browser.js"),
    bundle: true,
    format: "esm",
    platform: "browser",
    legalComments: "none",
  });
  await run(process.execPath, [join(ROOT, "scripts/client-types.mjs")]);
  await run("tsc", [
    ...["--declaration", "--emitDeclarationOnly", "--noEmit", "false", "--outDir", join(directory, "dist")],
    ...["--target", "es2024", "--module", "nodenext", "--strict", "--skipLibCheck", "--types", "node"],
    ...["--allowImportingTsExtensions", "--rewriteRelativeImportExtensions", "--verbatimModuleSyntax"],
    join(ROOT, "packages/client/src/index.ts"),
    join(ROOT, "packages/client/src/browser.ts"),
  ]);
  // tsc does not copy declarations that are sources themselves.
  await cp(join(ROOT, "packages/client/src/openapi.d.ts"), join(directory, "dist/openapi.d.ts"));
  const { license } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  await writeJson(join(directory, "package.json"), {
    name: client.name,
    version: await programVersion(),
    description: "The typed client of Hibernaut's HTTP API",
    license,
    type: "module",
    exports: {
      ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
      "./browser": { types: "./dist/browser.d.ts", default: "./dist/browser.js" },
    },
    engines: { node: `>=${CLIENT_NODE}` },
    dependencies: client.dependencies,
  });
  await cp(join(ROOT, "LICENSE"), join(directory, "LICENSE"));
}

/** @param {string} file @param {unknown} value */
function writeJson(file, value) {
  return write(file, `${JSON.stringify(value, null, 2)}\n`);
}
