/** The steps from a reference to a root file system. Each runs one tool, except for downloads. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "../domain/errors.ts";
import { flush } from "../lib/durable.ts";
import { wiping } from "../lib/wipe.ts";
import type { ImageConfig, ImageProgress, Login } from "./contract.ts";
import { dockerHost } from "./daemon.ts";
import { allowOwner, removeTree } from "./files.ts";
import { descriptorDigest, parseObject, readImageConfig, resolveManifest } from "./manifest.ts";
import { formatReference, type Reference } from "./reference.ts";
import type { RegistryClient } from "./registry/client.ts";
import type { LayerCache } from "./layers.ts";
import type { Job } from "./shared.ts";
import { commonArguments, contentStamp, pinnedName, skipsTls } from "./source.ts";
import { runTool } from "./tools.ts";
import { registriesHaveRules } from "./trust.ts";
import { openUploaded, requireUploaded } from "./upload/stored.ts";

/** The programs to run. Tests replace them to make one fail. */
export interface ImageTools {
  skopeo: string;
  umoci: string;
  mksquashfs: string;
}

/** How to reach registries. */
export interface Registries {
  client: RegistryClient;
  /** Registries that may use plain HTTP, in addition to those on loopback. */
  insecure: readonly string[];
  /** Finds the login for a repository. Undefined when there is none. */
  findLogin(host: string, repository: string): Promise<Login | undefined>;
}

/** One import. */
export interface Import {
  /** The reference as the user wrote it, for messages. */
  ref: string;
  /** The parsed reference, checked by `checkSource`. */
  reference: Reference;
  /** A private directory, which the caller deletes. */
  folder: string;
  tools: ImageTools;
  registries: Registries;
  /** Where the blobs of uploaded images are. */
  layers: LayerCache;
  job: Job<ImageProgress>;
}

/** Name of the root file system in an image's directory. */
export const ROOTFS_FILE = "rootfs.squashfs";

/** A manifest has a few kilobytes. A registry that needs longer than this to send one is down. */
const RESOLVE_TIMEOUT_MS = 60_000;
/** Enough for a 5 GB image at 25 Mbit/s. */
const COPY_TIMEOUT_MS = 30 * 60_000;
/** Enough for a 5 GB image on a slow disk, at 10 MB/s. The disk limits the speed of unpacking. */
const UNPACK_TIMEOUT_MS = 15 * 60_000;
const PACK_TIMEOUT_MS = 15 * 60_000;
/** Enough for a connection that breaks once. A registry that is down should be reported soon. */
const COPY_RETRIES = "2";
/** By default mksquashfs takes a quarter of the host's memory, which machines need. More than this was not faster. */
const MEMORY = ["-mem", "256M"];
/** The image's name in the private layout. */
const TAG = "image";
/** The directory of the download, which skopeo turns into a layout that umoci can unpack. */
const DOWNLOADED = "downloaded";

/** Returns the digest of the manifest that a reference stands for, without fetching the image. */
export async function resolveImage(work: Import): Promise<string> {
  const { ref, reference, folder, tools, registries, job } = work;
  job.report({ step: "resolve" });
  if (reference.kind === "upload") {
    await requireUploaded(work.layers, ref, reference);
    return reference.digest;
  }
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
 * Builds `rootfs.squashfs` in the import's directory, flushes it to the disk, and returns how to start the image.
 * `stamp` is the content's stamp from before the reference was resolved. It detects an archive that was replaced since,
 * which would be stored under the digest of the old one.
 */
export async function buildImage(work: Import, digest: string, stamp: string): Promise<ImageConfig> {
  const { folder, reference, ref } = work;
  await copyToLayout(work, digest);
  if ((await contentStamp(reference)) !== stamp) {
    throw new HibernautError("aborted", `The image ${ref} changed while it was read. Try again when it is complete.`, {
      image: ref,
    });
  }
  const config = await readLayout(join(folder, "layout"), ref);
  await unpack(work);
  // Deleted early, so that the three copies of an image are not on the disk at the same time.
  await Promise.all(["layout", DOWNLOADED].map((name) => removeTree(join(folder, name))));
  await pack(work);
  await removeTree(join(folder, "rootfs"));
  await flush(join(folder, ROOTFS_FILE));
  return config;
}

/** Returns the size of the root file system in an image's directory, in bytes. */
export async function rootfsSize(folder: string): Promise<number> {
  return (await stat(join(folder, ROOTFS_FILE))).size;
}

async function copyToLayout(work: Import, digest: string): Promise<void> {
  const { folder, tools, job } = work;
  const source = (await download(work, digest)) ?? pinnedName(work.reference, digest);
  job.report({ step: "copy" });
  // umoci reads gzip but not zstd. Level 1, because the copy is deleted a moment later.
  const compression = ["--dest-compress-format", "gzip", "--dest-compress-level", "1"];
  const access = await accessArguments(work, "src-");
  const options = ["--quiet", "--retry-times", COPY_RETRIES, ...compression, ...access];
  // Paths are relative, because a colon in the data directory's path would end the path here.
  const args = [...commonArguments(), "--tmpdir", ".", "copy", ...options, source, `oci:layout:${TAG}`];
  await runTool(tools.skopeo, args, { cwd: folder, timeoutMs: COPY_TIMEOUT_MS, signal: job.signal });
}

/**
 * Brings the parts of an image together, from a registry or an upload, and returns skopeo's name for them. Undefined when
 * skopeo has to fetch the image itself.
 */
async function download(work: Import, digest: string): Promise<string | undefined> {
  const { ref, reference, folder, registries, layers, job } = work;
  if (reference.kind === "upload") {
    await openUploaded(layers, ref, reference, join(folder, DOWNLOADED));
    return `dir:${DOWNLOADED}`;
  }
  if (reference.kind !== "registry" || (await registriesHaveRules())) return undefined;
  await registries.client.fetch({ ref, reference, job }, digest, join(folder, DOWNLOADED));
  return `dir:${DOWNLOADED}`;
}

/** Returns the arguments that give skopeo access. A login goes into a file, because other users can read arguments. */
async function accessArguments({ reference, folder, registries }: Import, prefix: "" | "src-"): Promise<string[]> {
  if (reference.kind === "daemon") return [`--${prefix}daemon-host`, dockerHost()];
  if (reference.kind !== "registry" || !(await registriesHaveRules())) return [];
  const { host, repository } = reference;
  const tls = skipsTls(reference, registries.insecure) ? [`--${prefix}tls-verify=false`] : [];
  const login = await registries.findLogin(host, repository);
  if (login === undefined) return tls;
  const auth = wiping(Buffer.from(`${login.username}:${login.password}`), (bytes) => bytes.toString("base64"));
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
  // "raw" leaves out the runtime configuration and the checksums of all files, which nothing reads here.
  const args = ["raw", "unpack", ...(isRoot() ? [] : ["--rootless"]), "--image", `layout:${TAG}`, "rootfs"];
  await runTool(tools.umoci, args, { cwd: folder, timeoutMs: UNPACK_TIMEOUT_MS, signal: job.signal });
}

async function pack({ folder, tools, job }: Import): Promise<void> {
  job.report({ step: "pack" });
  // Uncompressed data makes the fastest cold start. An unreadable file must be an error, not become an empty file.
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
    // Without root, files cannot be given to other users: umoci records the owners in an extended attribute
    // (user.rootlesscontainers) that the guest does not read. All files then belong to root, as in most images.
    options.push("-all-root", "-no-xattrs");
    await allowOwner(join(folder, "rootfs"));
  }
  const args = ["rootfs", ROOTFS_FILE, ...options];
  await runTool(tools.mksquashfs, args, { cwd: folder, timeoutMs: PACK_TIMEOUT_MS, signal: job.signal });
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
