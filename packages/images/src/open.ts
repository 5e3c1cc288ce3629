/** Images: turns OCI references and archives into root file systems. */
import { join } from "node:path";
import type { Confine } from "@hibernaut/domain/confined";
import pLimit from "p-limit";
import type { FetchImage, ImageStore, ImageUploads, RegistryLogins } from "./contract.ts";
import { foreignFiles, foreignLogin, LoginStore } from "./credentials.ts";
import type { ImageTools } from "./import.ts";
import { LayerCache } from "./layers.ts";
import { CheckedLogins } from "./logins.ts";
import { RegistryClient } from "./registry/client.ts";
import { PATIENCE, type Patience } from "./registry/patience.ts";
import { openStore } from "./store.ts";
import { Uploads } from "./upload/uploads.ts";

export type { Image, ImageConfig, ImageProgress, ImageStore } from "./contract.ts";
export { Library } from "./library.ts";

interface ImageStoreOptions {
  /** The data directory. Images are in `images/`, logins in `registries.json`. */
  dataDir: string;
  /** Programs to use instead of those in PATH. */
  tools?: Partial<ImageTools>;
  /** Registries, as `name` or `name:port`, that may use plain HTTP or any certificate. Those on loopback always may. */
  insecureRegistries?: readonly string[];
  /** How much of the downloaded layers to keep for later imports, in MB. Default: 2048. */
  layerCacheMb?: number;
  /** How many bytes the uploads that have not ended may have together, in MB. Default: 16384. */
  uploadMaxMb?: number;
  /** How long an upload may rest before it is cleaned up, in hours. Default: 24. */
  uploadKeepH?: number;
  /** How long an upload's connection may be silent, in milliseconds. Default: 20 s. */
  uploadStallMs?: number;
  /** What the layers of an image may have together, unpacked: in MB, and in entries. Default: 16384, and 500,000. */
  imageMaxMb?: number;
  imageMaxEntries?: number;
  /** How much of the disk must stay free after an import, in MB. Default: 0. */
  diskReserveMb?: number;
  /** How much disk images that are not in use may take together, in MB. Default: 20480. */
  imageKeepMb?: number;
  /** Returns the digests of the images that machines need now. Default: none. */
  inUse?(): ReadonlySet<string>;
  /** Makes a jail for what unpacks images. Default: it has the rights of the platform. */
  confine?: Confine | undefined;
  /** How long registries may take. */
  patience?: Partial<Patience>;
  /** Gets images from other hosts of the cluster. By default, there are none. */
  fetch?: FetchImage | undefined;
  /** The variables that locate docker's and skopeo's logins. Default: those of this process. */
  environment?: NodeJS.ProcessEnv;
}

const LAYER_CACHE_MB = 2048;
const UPLOAD_MAX_MB = 16_384;
const UPLOAD_KEEP_H = 24;
const IMAGE_KEEP_MB = 20_480;
const IMAGE_MAX_MB = 16_384;
const IMAGE_MAX_ENTRIES = 500_000;
/** A large image takes a gigabyte of memory and two CPUs while it is unpacked. */
const MAX_UNPACKING = 2;
const MB = 1024 * 1024;
/** More people than deploy to one host at a time. Each upload keeps a few KB in memory. */
const MAX_UPLOADS = 32;

/** The directory of an image, whether it exists or not. */
export function imageFolder(dataDir: string, digest: string): string {
  return join(dataDir, "images", digest.slice("sha256:".length));
}

/**
 * Opens the image store. Needs sqfstar when an image is imported, and skopeo for one that is not in a registry.
 *
 * @example
 * const images = await openImageStore({ dataDir: "/var/lib/hibernaut" });
 * const image = await images.ensure("docker-archive:/tmp/app.tar");
 */
export async function openImageStore(options: ImageStoreOptions): Promise<ImageStore> {
  return (await openImages(options)).images;
}

/** Opens the image store together with the logins it uses and the uploads that fill it. */
export async function openImages({
  dataDir,
  tools = {},
  insecureRegistries: insecure = [],
  layerCacheMb = LAYER_CACHE_MB,
  uploadMaxMb = UPLOAD_MAX_MB,
  uploadKeepH = UPLOAD_KEEP_H,
  uploadStallMs,
  patience = {},
  imageMaxMb = IMAGE_MAX_MB,
  imageMaxEntries = IMAGE_MAX_ENTRIES,
  diskReserveMb = 0,
  imageKeepMb = IMAGE_KEEP_MB,
  inUse = () => new Set(),
  confine,
  fetch,
  environment = process.env,
}: ImageStoreOptions): Promise<{
  images: ImageStore;
  logins: RegistryLogins;
  uploads: ImageUploads;
}> {
  const programs = { skopeo: "skopeo", sqfstar: "sqfstar", ...tools };
  const stored = new LoginStore(join(dataDir, "registries.json"));
  const findLogin = async (host: string, repository: string) => {
    const ours = await stored.get(host);
    if (ours !== undefined) return ours;
    for (const file of foreignFiles(environment)) {
      const login = await foreignLogin(file, host, repository);
      if (login !== undefined) return login;
    }
    return undefined;
  };
  const layers = new LayerCache(join(dataDir, "images/blobs/sha256"), layerCacheMb * MB);
  const limits = { ...PATIENCE, ...patience };
  const room = { imageBytes: imageMaxMb * MB, reserveBytes: diskReserveMb * MB };
  const client = new RegistryClient({ cache: layers, room, insecure, patience: limits, findLogin });
  const registries = { client, insecure, findLogin };
  const uploads = new Uploads({
    folder: join(dataDir, "images/blobs/uploads"),
    cache: layers,
    room,
    limits: { uploads: MAX_UPLOADS, bytes: uploadMaxMb * MB },
    keepMs: uploadKeepH * 3_600_000,
    ...(uploadStallMs !== undefined && { stallMs: uploadStallMs }),
    isReady: async (digest) => (await images.get(digest)) !== undefined,
  });
  await uploads.recover();
  const unpacking = { ...room, imageEntries: imageMaxEntries, turns: pLimit(MAX_UNPACKING), confine };
  const keep = { bytes: imageKeepMb * MB, inUse };
  const parts = { tools: programs, registries, layers, unpacking, uploads, fetch, keep };
  const images = await openStore(join(dataDir, "images"), parts);
  return { images, uploads, logins: new CheckedLogins(stored, client, limits.loginMs) };
}
