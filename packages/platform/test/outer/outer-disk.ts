/**
 * What the outer machine boots: the kernel package that the guest bundle was built from, and a read-only disk with this
 * host's Node, QEMU and image tools, the platform as it is in the repository, and an init. Nothing is downloaded.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, realpath } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { promisify } from "node:util";
import { readBundle } from "@hibernaut/guest/bundles";
import { qemuVersion } from "@hibernaut/hypervisor/qemu/accelerator";
import { PREPARED, prepareImages } from "../helpers/prepared-images.ts";
import { BUNDLE } from "../helpers/qemu-world.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { initScript } from "./outer-init.ts";
import { bundlePrograms, type Programs } from "./outer-programs.ts";
import { programPath, stage, writeScript } from "./staging.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../../..");
/** Where the guest build keeps the kernel package that it downloaded. */
const KERNELS = join(ROOT, "packages/guest/.build/cache");

/** What the platform runs, and what the init needs. `sh` is for both. */
const PROGRAMS = [
  ...["sh", "cat", "cp", "mkdir", "mount", "ip", "sleep", "setpriv", "fallocate", "mkfs.ext4"],
  // What tests do to files.
  ...["sync", "dd", "fincore"],
  // Plays a guest that has broken out of its jail.
  "perl",
  ...["qemu-system-x86_64", "skopeo", "sqfstar"],
];
/** QEMU loads its emulation as a module where it was built so, and its firmware by name. */
const QEMU_FILES = [
  "/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
  ...["kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin"].map((name) => `/usr/share/qemu/${name}`),
  "/usr/share/seabios/bios-256k.bin",
];
/** What the bundled platform loads besides itself: one library with native code, and the CLI. */
const NATIVE = "node_modules/better-sqlite3";
const NATIVE_CODE = `${NATIVE}/prebuilds/linux-x64.node`;
const REPOSITORY = [
  "packages/cli/package.json",
  "packages/cli/bin",
  "packages/cli/dist",
  "packages/jail/.build",
  // What makes file systems of images, for the programs of tests: they take it from the sources.
  "packages/images/package.json",
  "packages/images/src/flatten",
  `${NATIVE}/package.json`,
  `${NATIVE}/lib`,
];

/** What the kernel needs to find its disks and network, and to run guests of its own with KVM. */
const MODULES = ["virtio_pci", "virtio_blk", "virtio_net", "squashfs", "ext4", "kvm_amd", "tun"];
const INITRD_PROGRAMS = ["sh", "mount", "insmod", "switch_root"];

/** Leaves flushes out, to see what the test makes of it. */
const NO_FLUSH = { source: join(import.meta.dirname, "no-flush.c"), library: "/lib/no-flush.so" };

export interface OuterOptions {
  /** Whether flushes on the disk are real. Default: true. */
  flush?: boolean;
  /** See `InitOptions`. Default: false. */
  proved?: boolean;
  /** Tests that `Outer.run` runs. Default: none. */
  programs?: Programs;
  /** References of images that these tests find imported. */
  images?: readonly string[];
}

/** Paths of what QEMU starts the outer machine with. */
export interface OuterFiles {
  kernel: string;
  initrd: string;
  root: string;
}

/**
 * Builds all three files in an empty directory. Rejects when the setup has not been run. With `flush: false`, no program
 * on the disk really flushes anything.
 */
export async function buildOuterFiles(folder: string, options: OuterOptions = {}): Promise<OuterFiles> {
  const modules = await unpackKernel(folder);
  const root = join(folder, "root.squashfs");
  const [initrd] = await Promise.all([packInitrd(folder, modules), packRoot(join(folder, "root"), root, options)]);
  return { kernel: join(folder, "vmlinux"), initrd, root };
}

/** Takes the kernel from the guest bundle, and returns its modules in the order in which they can be loaded. */
async function unpackKernel(folder: string): Promise<string[]> {
  const packages = existsSync(KERNELS) ? (await readdir(KERNELS)).filter((name) => name.endsWith(".deb")) : [];
  if (packages.length === 0) throw new Error(`There is no kernel package in ${KERNELS}. Run npm run setup.`);
  const tree = join(folder, "kernel");
  for (const name of packages) await run("dpkg-deb", ["-x", join(KERNELS, name), tree]);
  await copyFile(join(BUNDLE, "vmlinux"), join(folder, "vmlinux"));
  const { kernel: version } = JSON.parse(await readFile(join(BUNDLE, "bundle.json"), "utf8")) as { kernel: string };
  await run(await programPath("depmod"), ["-b", tree, version]);
  const files = new Set<string>();
  for (const name of MODULES) {
    const args = ["-d", tree, "-S", version, "--show-depends", name];
    const { stdout } = await run(await programPath("modprobe"), args);
    for (const [, file = ""] of stdout.matchAll(/^insmod (\S+)/gm)) files.add(file);
  }
  return [...files];
}

/** A small initramfs, because a large one takes an emulated kernel a minute to unpack. */
async function packInitrd(folder: string, modules: readonly string[]): Promise<string> {
  const tree = join(folder, "initrd.root");
  await stage(tree, INITRD_PROGRAMS);
  await mkdir(join(tree, "modules"));
  for (const file of modules) await copyFile(file, join(tree, "modules", basename(file)));
  const list = modules.map((file) => `insmod /modules/${basename(file)}`);
  const steps = [
    "mount -t devtmpfs dev /dev",
    "mount -t proc proc /proc",
    ...list,
    "mount -t squashfs -o ro /dev/vda /mnt",
    "exec switch_root /mnt /init",
  ];
  await writeScript(join(tree, "init"), steps);
  const file = join(folder, "initrd");
  await run("sh", ["-c", 'cd "$0" && find . | cpio --quiet -o -H newc > "$1"', tree, file]);
  return file;
}

async function packRoot(
  tree: string,
  to: string,
  { flush = true, proved = false, programs = {}, images = [] }: OuterOptions,
): Promise<void> {
  const node = await realpath(process.execPath);
  await stage(
    tree,
    [...PROGRAMS, node, join(ROOT, NATIVE_CODE)],
    QEMU_FILES.filter((path) => existsSync(path)),
  );
  const layouts = [...new Set([SMALL_APP, ...images])].map((image) => relative(ROOT, layoutOf(image)));
  for (const path of [...REPOSITORY, relative(ROOT, BUNDLE), ...layouts])
    await cp(join(ROOT, path), join(tree, ROOT, path), { recursive: true });
  await prepareImages(images, join(tree, PREPARED));
  await bundlePrograms(tree, programs);
  if (!flush) await run("cc", ["-shared", "-fPIC", "-o", join(tree, NO_FLUSH.library), NO_FLUSH.source]);
  const { version: bundle } = await readBundle(BUNDLE);
  const preloaded = flush ? "" : NO_FLUSH.library;
  const qemu = await qemuVersion("qemu-system-x86_64");
  await writeScript(join(tree, "init"), [initScript({ qemu, bundle, preloaded, proved })]);
  const options = ["-noI", "-noD", "-noF", "-noX", "-no-exports", "-no-progress", "-quiet"];
  await run("mksquashfs", [tree, to, ...options]);
}

/** `/x/layout` of `oci:/x/layout:latest`. */
function layoutOf(reference: string): string {
  return reference.replace(/^oci:/, "").replace(/:[^:]*$/, "");
}
