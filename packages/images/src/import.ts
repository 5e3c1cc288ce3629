/** The steps from a reference to a root file system. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { flush } from "@hibernaut/lib/durable";
import { wiping } from "@hibernaut/lib/wipe";
import type { ImageConfig, ImageProgress, Login } from "./contract.ts";
import { dockerHost } from "./daemon.ts";
import { removeTree } from "./files.ts";
import type { LayerCache } from "./layers.ts";
import { resolveManifest } from "./manifest.ts";
import { formatReference, type Reference } from "./reference.ts";
import type { RegistryClient } from "./registry/client.ts";
import { MANIFEST_FILE } from "./registry/folder.ts";
import type { Job } from "./shared.ts";
import { commonArguments, contentStamp, pinnedName, skipsTls } from "./source.ts";
import { runTool } from "./tools.ts";
import { registriesHaveRules } from "./trust.ts";
import { type ImageParts, JAIL, type Unpacking, unpackImage } from "./unpack.ts";
import { openUploaded, requireUploaded } from "./upload/stored.ts";

/** The programs to run. Tests replace them to make one fail. */
export interface ImageTools {
  skopeo: string;
  sqfstar: string;
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
  unpacking: Unpacking;
  job: Job<ImageProgress>;
}

/** Name of the root file system in an image's directory. */
export const ROOTFS_FILE = "rootfs.squashfs";

/** A manifest has a few kilobytes. A registry that needs longer than this to send one is down. */
const RESOLVE_TIMEOUT_MS = 60_000;
/** Enough for a 5 GB image at 25 Mbit/s. */
const COPY_TIMEOUT_MS = 30 * 60_000;
/** Enough for a connection that breaks once. A registry that is down should be reported soon. */
const COPY_RETRIES = "2";
/** The directory of the image's manifest and blobs, by their digests. */
const PARTS = "parts";
/** The login for skopeo. */
const AUTH = "auth.json";

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
  const { folder, reference, ref, tools, unpacking, job } = work;
  const parts = await obtain(work, digest);
  if ((await contentStamp(reference)) !== stamp) {
    throw new HibernautError("aborted", `The image ${ref} changed while it was read. Try again when it is complete.`, {
      image: ref,
    });
  }
  const out = join(folder, ROOTFS_FILE);
  const config = await unpackImage({ ref, parts, folder, out, packer: tools.sqfstar, unpacking, job });
  await flush(out);
  // What is left in the directory becomes a part of the image.
  await Promise.all([PARTS, JAIL, AUTH].map((name) => removeTree(join(folder, name))));
  return config;
}

/** Returns the size of the root file system in an image's directory, in bytes. */
export async function rootfsSize(folder: string): Promise<number> {
  return (await stat(join(folder, ROOTFS_FILE))).size;
}

/** Brings the parts of an image together. */
async function obtain(work: Import, digest: string): Promise<ImageParts> {
  const { ref, reference, folder, registries, layers, job } = work;
  const to = join(folder, PARTS);
  if (reference.kind === "upload") await openUploaded(layers, ref, reference, to);
  else if (reference.kind !== "registry" || (await registriesHaveRules())) await copy(work, digest);
  else await registries.client.fetch({ ref, reference, job }, digest, to);
  const blob = (of: string) => join(to, of.slice("sha256:".length));
  return { folder: to, blob, manifest: await readFile(join(to, MANIFEST_FILE), "utf8") };
}

/** Has skopeo copy an image that only it can reach, with its layers as they are. */
async function copy(work: Import, digest: string): Promise<void> {
  const { folder, tools, job } = work;
  job.report({ step: "copy" });
  const options = ["--quiet", "--retry-times", COPY_RETRIES, ...(await accessArguments(work, "src-"))];
  // Paths are relative, because a colon in the data directory's path would end the path here.
  const from = pinnedName(work.reference, digest);
  const args = [...commonArguments(), "--tmpdir", ".", "copy", ...options, from, `dir:${PARTS}`];
  await runTool(tools.skopeo, args, { cwd: folder, timeoutMs: COPY_TIMEOUT_MS, signal: job.signal });
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
  await writeFile(join(folder, AUTH), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  return [...tls, "--authfile", AUTH];
}
