/** The steps from a reference to a root file system, each one run of a tool. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "../errors.ts";
import type { ImageConfig, ImageProgress } from "./contract.ts";
import { allowOwner, flush, removeTree } from "./files.ts";
import { descriptorDigest, parseObject, readImageConfig, resolveManifest } from "./manifest.ts";
import { formatReference, type Reference } from "./reference.ts";
import type { Job } from "./shared.ts";
import { commonArguments, contentStamp, pinnedName, skipsTls } from "./source.ts";
import { runTool } from "./tools.ts";

/** The programs that do the work; replaced in tests that need a failing one. */
export interface ImageTools {
  skopeo: string;
  umoci: string;
  mksquashfs: string;
}

/** One import: what, for whom, where its temporary files go and who waits for it. */
export interface Import {
  /** As the user wrote it, for messages. */
  ref: string;
  /** Checked by `checkSource`. */
  reference: Reference;
  /** A private folder; the caller deletes it. */
  folder: string;
  tools: ImageTools;
  job: Job<ImageProgress>;
}

/** Name of the root file system within an image's folder. */
export const ROOTFS_FILE = "rootfs.squashfs";

/** A manifest is a few kilobytes; a registry that needs longer than this to send one is down. */
const RESOLVE_TIMEOUT_MS = 60_000;
/** A 5 GB image over 25 Mbit/s. */
const COPY_TIMEOUT_MS = 30 * 60_000;
/** A 5 GB image on a slow disk of 10 MB/s; unpacking is bound by the disk. */
const UNPACK_TIMEOUT_MS = 15 * 60_000;
const PACK_TIMEOUT_MS = 15 * 60_000;
/** For a connection that breaks once; a registry that is down should be reported soon. */
const COPY_RETRIES = "2";
/** mksquashfs would take a quarter of the memory, which belongs to the machines; more was not faster. */
const MEMORY = ["-mem", "256M"];
/** The image's name within the private layout. */
const TAG = "image";

/** Finds the digest of the manifest that a reference stands for, without fetching the image. */
export async function resolveImage({ ref, reference, folder, tools, job }: Import): Promise<string> {
  job.report({ step: "resolve" });
  const tls = skipsTls(reference) ? ["--tls-verify=false"] : [];
  const args = [...commonArguments(), "--tmpdir", ".", "inspect", "--raw", ...tls, formatReference(reference)];
  const raw = await runTool(tools.skopeo, args, { cwd: folder, timeoutMs: RESOLVE_TIMEOUT_MS, signal: job.signal });
  return resolveManifest(raw, ref);
}

/**
 * Builds `rootfs.squashfs` in the import's folder, flushed to the disk, and returns how to start the
 * image. `stamp` is the content's stamp from before it was resolved: an archive that was replaced in
 * between would be stored under the digest of the old one.
 */
export async function buildImage(work: Import, digest: string, stamp: string): Promise<ImageConfig> {
  const { folder, reference, ref } = work;
  await copyToLayout(work, digest);
  if ((await contentStamp(reference)) !== stamp) {
    throw new HibernautError("aborted", `The image ${ref} changed while it was read. Ask again when it is complete.`, {
      image: ref,
    });
  }
  const config = await readLayout(join(folder, "layout"), ref);
  await unpack(work);
  // The three copies of an image need not be on the disk at the same time.
  await removeTree(join(folder, "layout"));
  await pack(work);
  await removeTree(join(folder, "rootfs"));
  await flush(join(folder, ROOTFS_FILE));
  return config;
}

/** Size of the root file system in an image's folder, in bytes. */
export async function rootfsSize(folder: string): Promise<number> {
  return (await stat(join(folder, ROOTFS_FILE))).size;
}

async function copyToLayout({ folder, reference, tools, job }: Import, digest: string): Promise<void> {
  job.report({ step: "copy" });
  const tls = skipsTls(reference) ? ["--src-tls-verify=false"] : [];
  // umoci reads gzip but no zstd; level 1 because the copy is deleted a moment later.
  const compression = ["--dest-compress-format", "gzip", "--dest-compress-level", "1"];
  const options = ["--quiet", "--retry-times", COPY_RETRIES, ...compression, ...tls];
  // Paths are relative: the data folder may have a colon in its name, which ends a path here.
  const args = [
    ...commonArguments(),
    "--tmpdir",
    ".",
    "copy",
    ...options,
    pinnedName(reference, digest),
    `oci:layout:${TAG}`,
  ];
  await runTool(tools.skopeo, args, { cwd: folder, timeoutMs: COPY_TIMEOUT_MS, signal: job.signal });
}

async function readLayout(layout: string, ref: string): Promise<ImageConfig> {
  const blob = async (digest: string) => readFile(join(layout, "blobs", digest.replace(":", "/")), "utf8");
  const index = parseObject(await readFile(join(layout, "index.json"), "utf8"), ref, "index");
  const manifests = Array.isArray(index.manifests) ? index.manifests : [];
  const manifest = parseObject(await blob(descriptorDigest(manifests[0], ref)), ref, "manifest");
  return readImageConfig(await blob(descriptorDigest(manifest.config, ref)), ref);
}

async function unpack({ folder, tools, job }: Import): Promise<void> {
  job.report({ step: "unpack" });
  // "raw" leaves out the runtime configuration and the checksums of all files: nobody reads them here.
  const args = ["raw", "unpack", ...(isRoot() ? [] : ["--rootless"]), "--image", `layout:${TAG}`, "rootfs"];
  await runTool(tools.umoci, args, { cwd: folder, timeoutMs: UNPACK_TIMEOUT_MS, signal: job.signal });
}

async function pack({ folder, tools, job }: Import): Promise<void> {
  job.report({ step: "pack" });
  // Uncompressed data measured best for cold start; an unreadable file must be an error, not an empty file.
  const options = [
    "-noD",
    "-noF",
    "-noI",
    "-noX",
    "-no-exports",
    ...MEMORY,
    "-no-progress",
    "-quiet",
    "-exit-on-error",
  ];
  if (!isRoot()) {
    // Without root nothing can be given to another user: umoci notes the owners in an extended attribute
    // (user.rootlesscontainers) that the guest does not read. All files belong to root then, as in the most images.
    options.push("-all-root", "-no-xattrs");
    await allowOwner(join(folder, "rootfs"));
  }
  const args = ["rootfs", ROOTFS_FILE, ...options];
  await runTool(tools.mksquashfs, args, { cwd: folder, timeoutMs: PACK_TIMEOUT_MS, signal: job.signal });
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
