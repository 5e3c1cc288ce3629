/** The steps from a reference to a root file system, each one run of a tool, but for downloads. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "../domain/errors.ts";
import { flush } from "../lib/durable.ts";
import type { ImageConfig, ImageProgress, Login } from "./contract.ts";
import { dockerHost } from "./daemon.ts";
import { allowOwner, removeTree } from "./files.ts";
import { descriptorDigest, parseObject, readImageConfig, resolveManifest } from "./manifest.ts";
import { formatReference, type Reference } from "./reference.ts";
import type { RegistryClient } from "./registry/client.ts";
import type { Job } from "./shared.ts";
import { commonArguments, contentStamp, pinnedName, skipsTls } from "./source.ts";
import { runTool } from "./tools.ts";
import { registriesHaveRules } from "./trust.ts";

/** The programs that do the work; replaced in tests that need a failing one. */
export interface ImageTools {
  skopeo: string;
  umoci: string;
  mksquashfs: string;
}

/** How registries are reached. */
export interface Registries {
  client: RegistryClient;
  /** Those that may speak plain HTTP, beside those on loopback. */
  insecure: readonly string[];
  findLogin(host: string, repository: string): Promise<Login | undefined>;
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
  registries: Registries;
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
/** The folder of what was downloaded; skopeo makes of it a layout that umoci can unpack. */
const DOWNLOADED = "downloaded";

/** Finds the digest of the manifest that a reference stands for, without fetching the image. */
export async function resolveImage(work: Import): Promise<string> {
  const { ref, reference, folder, tools, registries, job } = work;
  job.report({ step: "resolve" });
  if (reference.kind === "registry" && !(await registriesHaveRules()))
    return registries.client.resolve({ ref, reference, job });
  const args = [
    ...commonArguments(),
    "--tmpdir",
    ".",
    "inspect",
    "--raw",
    ...(await accessArguments(work, "")),
    formatReference(reference),
  ];
  // Docker makes a manifest only by exporting the whole image.
  const timeoutMs = reference.kind === "daemon" ? COPY_TIMEOUT_MS : RESOLVE_TIMEOUT_MS;
  const raw = await runTool(tools.skopeo, args, { cwd: folder, timeoutMs, signal: job.signal });
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
  await Promise.all(["layout", DOWNLOADED].map((name) => removeTree(join(folder, name))));
  await pack(work);
  await removeTree(join(folder, "rootfs"));
  await flush(join(folder, ROOTFS_FILE));
  return config;
}

/** Size of the root file system in an image's folder, in bytes. */
export async function rootfsSize(folder: string): Promise<number> {
  return (await stat(join(folder, ROOTFS_FILE))).size;
}

async function copyToLayout(work: Import, digest: string): Promise<void> {
  const { folder, tools, job } = work;
  const source = (await download(work, digest)) ?? pinnedName(work.reference, digest);
  job.report({ step: "copy" });
  // umoci reads gzip but no zstd; level 1 because the copy is deleted a moment later.
  const compression = ["--dest-compress-format", "gzip", "--dest-compress-level", "1"];
  const access = await accessArguments(work, "src-");
  const options = ["--quiet", "--retry-times", COPY_RETRIES, ...compression, ...access];
  // Paths are relative: the data folder may have a colon in its name, which ends a path here.
  const args = [...commonArguments(), "--tmpdir", ".", "copy", ...options, source, `oci:layout:${TAG}`];
  await runTool(tools.skopeo, args, { cwd: folder, timeoutMs: COPY_TIMEOUT_MS, signal: job.signal });
}

/** Downloads an image of a registry, and says what skopeo calls it then; undefined when skopeo is to fetch it. */
async function download(work: Import, digest: string): Promise<string | undefined> {
  const { ref, reference, folder, registries, job } = work;
  if (reference.kind !== "registry" || (await registriesHaveRules())) return undefined;
  await registries.client.fetch({ ref, reference, job }, digest, join(folder, DOWNLOADED));
  return `dir:${DOWNLOADED}`;
}

/** What lets skopeo into a registry, or to Docker. The login goes into a file of the import's: others can read command lines. */
async function accessArguments({ reference, folder, registries }: Import, prefix: "" | "src-"): Promise<string[]> {
  if (reference.kind === "daemon") return [`--${prefix}daemon-host`, dockerHost()];
  if (reference.kind !== "registry" || !(await registriesHaveRules())) return [];
  const { host, repository } = reference;
  const tls = skipsTls(reference, registries.insecure) ? [`--${prefix}tls-verify=false`] : [];
  const login = await registries.findLogin(host, repository);
  if (login === undefined) return tls;
  const auth = Buffer.from(`${login.username}:${login.password}`).toString("base64");
  await writeFile(join(folder, "auth.json"), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  return [...tls, "--authfile", "auth.json"];
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
