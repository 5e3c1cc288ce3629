#!/usr/bin/env node
/**
 * Builds the guest bundle: the kernel, the initramfs with the agent, and a description.
 * See README.md in this directory. This is plain JavaScript, because it runs before anything is set up.
 *
 *   node packages/guest/build.mjs [--out DIR] [--kernel FILE [--modules DIR]] [--kernel-deb FILE]
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { chmod, copyFile, cp, lutimes, mkdir, mkdtemp, open, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hasPvhEntry, isElf, kernelVersion, payloadOf } from "./kernel-image.mjs";

const HERE = import.meta.dirname ?? dirname(fileURLToPath(import.meta.url));
const AGENT = join(HERE, "agent");
const PROGRAMS = [fileURLToPath(import.meta.url), join(HERE, "kernel-image.mjs")];
const BUILD = join(HERE, ".build");
const CACHE = join(BUILD, "cache");
const CFLAGS = "-std=c11 -O2 -static -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Werror".split(" ");

/** Modules that the agent needs. A kernel may have any of them built in. */
const MODULES = ["virtio_pci", "virtio_blk", "virtio_net", "virtio_console", "overlay", "squashfs", "ext4", "tcp_diag"];

/** Mount points that the agent expects. It creates the others. */
const FOLDERS = ["dev", "image", "layer", "proc", "root", "run", "sys"];

/**
 * @typedef {object} Bundle
 * @property {string} version first 16 hex digits of the SHA-256 of the kernel and the initramfs
 * @property {string} kernel the kernel's version
 * @property {"vmlinux" | "vmlinuz"} image the file with the kernel: unpacked, or as the distribution packed it
 * @property {string} agent SHA-256 of the agent's binary
 * @property {number} protocol the version of the protocol that the agent speaks
 * @property {{kernel: string[], agent_version: string, inputs: string}} built_from
 *
 * @typedef {object} Options
 * @property {string} [out] where to write the bundle (default: packages/guest/.build/bundle)
 * @property {string} [kernelDeb] a kernel package file to use instead of the distribution's
 * @property {string} [kernel] a kernel image (bzImage or ELF) to use instead of a package
 * @property {string} [modules] the modules of that kernel, for example /lib/modules/6.1.0; absent if they are all built in
 * @property {(step: string) => void} [onStep] called for every step that is not skipped
 */

/**
 * Builds the bundle. Does nothing when the existing one was built from the same inputs.
 *
 * @param {Options} [options]
 * @returns {Promise<Bundle & {out: string, built: boolean}>}
 */
export async function buildBundle(options = {}) {
  const out = resolve(options.out ?? join(BUILD, "bundle"));
  const onStep = options.onStep ?? (() => {});
  const sources = agentSources();
  const published = readBundle(out);
  if (published !== undefined && published.built_from.inputs === inputsOf(options, sources.hash)) {
    return { ...published, out, built: false };
  }
  await mkdir(BUILD, { recursive: true });
  await removeAbandoned();
  const work = await mkdtemp(join(BUILD, "work-"));
  try {
    // First, because a kernel may be refused.
    const kernel = await findKernel(work, options, onStep);
    const next = join(work, "bundle");
    await mkdir(next);
    const image = await placeKernel(work, kernel.image, next);
    onStep("compiling the agent");
    const agent = await compileAgent(work, sources);
    onStep(`packing the initramfs for kernel ${kernel.version}`);
    await packInitramfs(work, agent, kernel, join(next, "initrd"));
    /** @type {Bundle} */
    const bundle = {
      version: sha256(readFileSync(join(next, image)), readFileSync(join(next, "initrd"))).slice(0, 16),
      kernel: kernel.version,
      image,
      agent: sha256(readFileSync(agent)),
      protocol: agentProtocol(),
      // Look at the inputs again: the kernel's package may have just been downloaded to the cache.
      built_from: { kernel: kernel.from, agent_version: sources.version, inputs: inputsOf(options, sources.hash) },
    };
    await writeFile(join(next, "bundle.json"), `${JSON.stringify(bundle, null, 2)}\n`);
    await publish(next, out, bundle, join(work, "replaced"));
    onStep(`bundle ${bundle.version} is ready`);
    return { ...bundle, out, built: true };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Deletes the work directories of builds that were killed. A directory that is in use is younger than an hour. */
async function removeAbandoned() {
  for (const name of readdirSync(BUILD)) {
    const folder = join(BUILD, name);
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (name.startsWith("work-") && age > 3_600_000) await rm(folder, { recursive: true, force: true });
  }
}

/** @param {...(Buffer | string)} parts */
function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** Returns the agent's C files, a hash of all its sources, and its version. */
function agentSources() {
  const names = readdirSync(AGENT)
    .filter((name) => /\.[ch]$/.test(name))
    .sort();
  const hash = sha256(...names.flatMap((name) => [`${name}\n`, readFileSync(join(AGENT, name))]));
  const { version } = /** @type {{version: string}} */ (JSON.parse(readFileSync(join(HERE, "package.json"), "utf8")));
  return { c: names.filter((name) => name.endsWith(".c")), hash, version: `${version}+${hash.slice(0, 8)}` };
}

/** Returns the version of the protocol that the agent speaks. */
function agentProtocol() {
  const found = /^#define PROTOCOL (\d+)u$/m.exec(readFileSync(join(AGENT, "frame.h"), "utf8"))?.[1];
  if (found === undefined) throw new Error("agent/frame.h does not define PROTOCOL as a number");
  return Number(found);
}

/**
 * Returns a hash of everything that the bundle is built from. Large files count by name, size and time.
 *
 * @param {Options} options
 * @param {string} agent
 */
function inputsOf(options, agent) {
  const given = [options.kernel, options.modules, options.kernelDeb].filter((path) => path !== undefined);
  const files = given.length > 0 ? given.map((path) => resolve(path)) : cachedPackages();
  const seen = files.map((path) => {
    const found = statSync(path, { throwIfNoEntry: false });
    return `${given.length > 0 ? path : basename(path)} ${found?.size} ${given.length > 0 ? found?.mtimeMs : ""}`;
  });
  return sha256(
    agent,
    readFileSync(join(HERE, "package.json")),
    ...PROGRAMS.map((file) => readFileSync(file)),
    seen.join("\n"),
  );
}

/** @param {string} out @returns {Bundle | undefined} */
function readBundle(out) {
  try {
    const bundle = /** @type {Partial<Bundle>} */ (JSON.parse(readFileSync(join(out, "bundle.json"), "utf8")));
    if (!existsSync(join(out, bundle.image ?? "vmlinuz")) || !existsSync(join(out, "initrd"))) return undefined;
    return typeof bundle.built_from?.inputs === "string" ? /** @type {Bundle} */ (bundle) : undefined;
  } catch {
    return undefined; // It is absent, or incomplete because the disk was full. Either way, it is built again.
  }
}

/**
 * Runs a tool and returns its output. Shows its errors only when it fails.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, input?: string, output?: string}} [files] input and output are file names
 * @returns {Promise<string>}
 */
async function run(command, args, files = {}) {
  const input = files.input === undefined ? undefined : await open(files.input, "r");
  const output = files.output === undefined ? undefined : await open(files.output, "w");
  try {
    return await new Promise((done, failed) => {
      const child = spawn(command, args, {
        cwd: files.cwd ?? HERE,
        stdio: [input?.fd ?? "ignore", output?.fd ?? "pipe", "pipe"],
        // depmod and modprobe are in sbin, which is not in every user's PATH.
        env: { ...process.env, LC_ALL: "C", PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin` },
      });
      let text = "";
      let errors = "";
      child.stdout?.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      child.stderr?.setEncoding("utf8").on("data", (chunk) => (errors += chunk));
      child.on("error", (error) => {
        const missing = "code" in error && error.code === "ENOENT";
        failed(
          new Error(missing ? `${command} is not installed. Install it to build the guest bundle` : error.message),
        );
      });
      child.on("close", (code, signal) => {
        if (code === 0) done(text);
        else
          failed(
            new Error(`${[command, ...args].join(" ")} failed (${signal ?? `exit code ${code}`}):\n${errors.trim()}`),
          );
      });
    });
  } finally {
    await input?.close();
    await output?.close();
  }
}

/** @param {string} work @param {{c: string[], version: string}} sources */
async function compileAgent(work, sources) {
  const binary = join(work, "agent");
  await run(process.env.CC ?? "cc", [...CFLAGS, `-DAGENT_VERSION="${sources.version}"`, "-o", binary, ...sources.c], {
    cwd: AGENT,
  });
  await run("strip", [binary]);
  return binary;
}

/**
 * @typedef {object} Kernel
 * @property {string} image
 * @property {string} version
 * @property {string | undefined} root the directory whose lib/modules/VERSION contains its modules
 * @property {string[]} from what the kernel was taken from, for bundle.json
 *
 * @param {string} work
 * @param {Options} options
 * @param {(step: string) => void} onStep
 * @returns {Promise<Kernel>}
 */
async function findKernel(work, options, onStep) {
  if (options.modules !== undefined && options.kernel === undefined) throw new Error("--modules also needs --kernel");
  if (options.kernel !== undefined) return await givenKernel(work, resolve(options.kernel), options.modules);
  let packages = options.kernelDeb === undefined ? cachedPackages() : [resolve(options.kernelDeb)];
  if (packages.length === 0) packages = await downloadKernel(work, onStep);
  const root = join(work, "kernel");
  for (const file of packages) await run("dpkg-deb", ["-x", file, root]);
  // Newer packages contain /usr/lib/modules, but depmod looks for /lib/modules.
  if (!existsSync(join(root, "lib"))) await symlink("usr/lib", join(root, "lib"));
  const from = packages.map((file) => basename(file));
  const boot = existsSync(join(root, "boot")) ? readdirSync(join(root, "boot")) : [];
  const image = boot.find((name) => name.startsWith("vmlinuz-"));
  if (image === undefined) throw new Error(`${from.join(", ")} does not contain a kernel. Name one with --kernel`);
  return { image: join(root, "boot", image), version: image.slice("vmlinuz-".length), root, from };
}

/** @param {string} work @param {string} image @param {string} [modules] @returns {Promise<Kernel>} */
async function givenKernel(work, image, modules) {
  const version = kernelVersion(readFileSync(image));
  if (version === undefined) throw new Error(`${image} is not a kernel image (bzImage or ELF)`);
  const from = [basename(image)];
  if (modules === undefined) return { image, version, root: undefined, from };
  const nested = join(resolve(modules), "lib/modules", version);
  const folder = existsSync(nested) ? nested : resolve(modules);
  if (!existsSync(join(folder, "kernel"))) {
    throw new Error(
      `${folder} does not contain kernel modules. --modules needs a directory like /lib/modules/${version}`,
    );
  }
  // A copy, because depmod writes next to the modules, which may be those of the running system.
  const root = join(work, "kernel");
  await cp(folder, join(root, "lib/modules", version), {
    recursive: true,
    filter: (path) => !/\/(build|source)$/.test(path),
  });
  return { image, version, root, from };
}

/**
 * Puts the kernel into the bundle, unpacked if QEMU can enter it directly. Returns the name of the file.
 *
 * @param {string} work @param {string} image @param {string} next @returns {Promise<"vmlinux" | "vmlinuz">}
 */
async function placeKernel(work, image, next) {
  const name = (await unpackKernel(work, readFileSync(image), join(next, "vmlinux"))) ? "vmlinux" : "vmlinuz";
  if (name === "vmlinuz") await copyFile(image, join(next, name));
  await chmod(join(next, name), 0o644);
  return name;
}

/** Returns whether the kernel can be entered directly; if so, it is at `to`. @param {string} work @param {Buffer} image @param {string} to */
async function unpackKernel(work, image, to) {
  const packed = isElf(image) ? undefined : payloadOf(image);
  if (packed === undefined) await writeFile(to, image);
  else {
    await writeFile(join(work, "payload"), packed.payload);
    await run(packed.tool, ["-dc"], { input: join(work, "payload"), output: to });
  }
  if (hasPvhEntry(readFileSync(to))) return true;
  if (isElf(image)) throw new Error("This ELF kernel has no PVH entry point. Build it with CONFIG_PVH=y");
  await rm(to);
  return false;
}

/** Returns the kernel packages that were downloaded earlier. The directory is complete or absent. */
function cachedPackages() {
  if (!existsSync(CACHE)) return [];
  return readdirSync(CACHE)
    .filter((name) => name.endsWith(".deb"))
    .sort()
    .map((name) => join(CACHE, name));
}

/** @param {string} work @param {(step: string) => void} onStep */
async function downloadKernel(work, onStep) {
  const folder = join(work, "cache");
  await mkdir(folder);
  // As root, apt-get downloads as the user _apt, who may not write here, and prints a warning.
  const asRoot = process.getuid?.() === 0 ? ["-o", "APT::Sandbox::User=root"] : [];
  const attempt = async () => {
    const names = await kernelPackages();
    if (names.length === 0) throw new Error("apt does not know a kernel package for virtual machines");
    onStep(`downloading ${names.join(" and ")}`);
    await run("apt-get", [...asRoot, "-q", "download", ...names], { cwd: folder });
  };
  try {
    await attempt();
  } catch (error) {
    // apt has no lists yet, or the mirror no longer has the package. An update solves both.
    if (asRoot.length === 0) {
      const advice = "Run `sudo apt-get update` and try again, or name a kernel with --kernel and --modules.";
      throw new Error(`${messageOf(error)}\n${advice}`, { cause: error });
    }
    onStep("updating apt's package lists");
    await run("apt-get", ["-q", "update"]);
    try {
      await attempt();
    } catch (again) {
      throw new Error(`${messageOf(again)}\nName a kernel with --kernel and --modules instead.`, { cause: again });
    }
  }
  await replaceFolder(folder, CACHE, join(work, "old-cache"));
  return cachedPackages();
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the packages of the distribution's newest kernel for virtual machines: Debian's, otherwise Ubuntu's. */
async function kernelPackages() {
  const architecture = (await run("dpkg", ["--print-architecture"])).trim();
  for (const meta of [`linux-image-cloud-${architecture}`, "linux-image-virtual", "linux-image-generic"]) {
    const text = await run("apt-cache", ["depends", meta]).catch(() => "");
    const image = /^\s*Depends: (linux-image-\d\S+)$/m.exec(text)?.[1];
    if (image === undefined) continue;
    const modules = image.replace("linux-image-", "linux-modules-");
    const split = (await run("apt-cache", ["depends", image]).catch(() => "")).includes(`Depends: ${modules}\n`);
    return split ? [image, modules] : [image];
  }
  return [];
}

/**
 * Packs an uncompressed cpio archive that is the same, bit for bit, for every user and on every host.
 *
 * @param {string} work @param {string} agent @param {Kernel} kernel @param {string} to
 */
async function packInitramfs(work, agent, kernel, to) {
  const root = join(work, "initramfs");
  for (const folder of ["", ...FOLDERS, "modules"]) await mkdir(join(root, folder));
  await copyFile(agent, join(root, "init"));
  const list = [];
  for (const file of await modulesInOrder(kernel)) {
    const name = `modules/${basename(file).replace(/\.ko\..*$/, ".ko")}`;
    await unpackModule(file, join(root, name));
    list.push(name);
  }
  await writeFile(join(root, "modules.list"), list.map((name) => `/${name}\n`).join(""));
  const entries = ["init", "modules.list", ...FOLDERS, "modules", ...list].sort();
  for (const entry of entries) {
    const path = join(root, entry);
    await chmod(path, entry === "init" || statSync(path).isDirectory() ? 0o755 : 0o644);
    await lutimes(path, 0, 0);
  }
  await writeFile(join(work, "entries"), entries.map((entry) => `${entry}\n`).join(""));
  const cpio = ["--quiet", "-o", "-H", "newc", "--reproducible", "-R", "+0:+0"];
  await run("cpio", cpio, { cwd: root, input: join(work, "entries"), output: to });
}

/** Returns module files in the order in which they can be loaded. @param {Kernel} kernel */
async function modulesInOrder(kernel) {
  /** @type {Set<string>} */
  const files = new Set();
  if (kernel.root === undefined) return files;
  await run("depmod", ["-b", kernel.root, kernel.version]);
  for (const name of MODULES) {
    const text = await run("modprobe", ["-d", kernel.root, "-S", kernel.version, "--show-depends", name]);
    for (const found of text.matchAll(/^insmod (\S+)/gm)) if (found[1] !== undefined) files.add(found[1]);
  }
  return files;
}

/** Copies a module and unpacks it, because the agent loads plain files. @param {string} file @param {string} to */
async function unpackModule(file, to) {
  const tool = { ".xz": "xz", ".zst": "zstd", ".gz": "gzip" }[/\.ko(\.\w+)$/.exec(file)?.[1] ?? ""];
  if (tool === undefined) await copyFile(file, to);
  else await run(tool, ["-dc", file], { output: to });
}

/**
 * Replaces the old bundle with the new one. Kernel and initramfs are replaced only when they differ, so that readers of an
 * unchanged bundle never see them disappear.
 *
 * @param {string} next @param {string} out @param {Bundle} bundle @param {string} aside
 */
async function publish(next, out, bundle, aside) {
  if (readBundle(out)?.version === bundle.version) {
    await rename(join(next, "bundle.json"), join(out, "bundle.json"));
    return;
  }
  await mkdir(dirname(out), { recursive: true });
  await replaceFolder(next, out, aside);
}

/**
 * Replaces a directory. If two builds do this at the same time, the result of the second one stays.
 *
 * @param {string} next @param {string} out @param {string} aside
 */
async function replaceFolder(next, out, aside) {
  for (let tries = 0; ; tries += 1) {
    try {
      if (existsSync(out)) await rename(out, `${aside}-${tries}`);
      await rename(next, out);
      return;
    } catch (error) {
      const lost =
        error instanceof Error && "code" in error && ["ENOENT", "ENOTEMPTY", "EEXIST"].includes(String(error.code));
      if (!lost || tries > 10) throw error;
    }
  }
}

/** @param {string[]} args @returns {Options} */
function parseArguments(args) {
  /** @type {Record<string, "out" | "kernel" | "modules" | "kernelDeb">} */
  const known = { "--out": "out", "--kernel": "kernel", "--modules": "modules", "--kernel-deb": "kernelDeb" };
  /** @type {Options} */
  const options = {};
  for (let at = 0; at < args.length; at += 2) {
    const key = known[args[at] ?? ""];
    const value = args[at + 1];
    if (key === undefined)
      throw new Error(`Unknown option ${args[at]}. Known options are ${Object.keys(known).join(", ")}.`);
    if (value === undefined) throw new Error(`${args[at]} needs a value`);
    options[key] = value;
  }
  return options;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    await buildBundle({
      ...parseArguments(process.argv.slice(2)),
      onStep: (step) => console.error(`guest bundle: ${step}`),
    });
  } catch (error) {
    console.error(`guest bundle: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}
