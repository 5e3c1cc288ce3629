/** What the platform needs from its image store: an image reference in, a root file system out. */
import type { Readable } from "node:stream";

/** How to run an image, from its OCI image configuration. */
export interface ImageConfig {
  entrypoint: string[];
  cmd: string[];
  /** Variables as `NAME=value`. */
  env: string[];
  /** `user[:group]`. Empty means root. */
  user: string;
  workingDir: string;
  /** `SIGTERM`, `15`, ...; absent means SIGTERM. */
  stopSignal?: string;
  /** The TCP ports that it says it listens on. Absent if it names none. */
  exposedPorts?: number[];
}

/** An image that is ready to be started. */
export interface Image {
  /** The reference that was requested. */
  ref: string;
  /** Digest of the image's manifest: `sha256:` and 64 hex digits. */
  digest: string;
  /** Absolute path of the root file system (squashfs). */
  rootfs: string;
  config: ImageConfig;
  /** Size of the root file system's file. */
  sizeBytes: number;
}

/** A step of an import, for progress displays. */
export type ImageProgress =
  | { step: "resolve" | "copy" | "unpack" | "pack" }
  | {
      step: "download";
      /** Digest of the layer, and how much of it has been downloaded. */
      layer: string;
      doneBytes: number;
      totalBytes: number;
      /** All layers of the image together, including those that need no download. */
      imageDoneBytes: number;
      imageTotalBytes: number;
    };

export interface EnsureOptions {
  /** Stops waiting. The import is cancelled when nobody else waits for it. */
  signal?: AbortSignal;
  onProgress?(progress: ImageProgress): void;
}

/** An image that is not deleted until this is disposed of: `using image = await images.hold(ref)`. */
export type HeldImage = Image & Disposable;

/** An image on the disk, for lists. */
export interface StoredImage {
  digest: string;
  /** The reference that it was imported by. Undefined when an older version imported it. */
  ref: string | undefined;
  sizeBytes: number;
  /** RFC 3339. */
  importedAt: string;
}

/** Which images to delete. */
export interface CollectOptions {
  /** Keep images that were requested or in use less than this long ago, in milliseconds. Default: 0. */
  unusedForMs?: number;
}

/** User name and password, or token, for a registry. */
export interface Login {
  username: string;
  password: string;
}

/**
 * Gets an image from where it was made already, such as another host of the cluster: puts its root file system at the path.
 * Resolves with what else is known of it, and with undefined when it is not there either.
 */
export type FetchImage = (
  digest: string,
  file: string,
  signal: AbortSignal,
) => Promise<{ config: ImageConfig; ref?: string } | undefined>;

/** Imports, finds and deletes images. */
export interface ImageStore {
  /**
   * Resolves a reference, and builds its root file system unless it is cached. Concurrent calls for one image share one
   * build. Rejects with a HibernautError: `invalid_argument` (bad reference, unsupported kind or architecture, corrupt
   * image), `not_found`, `unavailable` (registry does not answer, disk full) or `aborted`.
   */
  ensure(ref: string, options?: EnsureOptions): Promise<Image>;
  /**
   * Does the same, and keeps the image from being deleted until it is disposed of, so that a machine with it can be
   * stored. An image from `ensure` may be deleted at once.
   */
  hold(ref: string, options?: EnsureOptions): Promise<HeldImage>;
  /**
   * Returns the image of a digest, held, once it is cached: by what `fetch` gives if it is not. Undefined when `fetch` has none
   * either.
   */
  adopt(digest: string, fetch: FetchImage, options?: EnsureOptions): Promise<HeldImage | undefined>;
  /** Returns the cached image. Undefined when it is not cached. */
  get(digest: string): Promise<Image | undefined>;
  /**
   * Returns the SHA-256 of a cached image's root file system, hex: two hosts that built the same image by themselves may
   * have different ones. Undefined when it is not cached.
   */
  fingerprint(digest: string): Promise<string | undefined>;
  /** Lists all images, newest first. */
  list(): Promise<StoredImage[]>;
  /**
   * Deletes images whose digest is not in `inUse()`, and leftovers of broken imports. Returns the deleted digests. Calls
   * `inUse` again before each deletion, because a machine may have been created meanwhile.
   */
  collect(inUse: () => ReadonlySet<string>, options?: CollectOptions): Promise<string[]>;
  /** Deletes downloaded layers that no running pull needs. Returns the number of bytes that were freed. */
  dropLayers(): Promise<number>;
}

/** A part of an uploaded image: its configuration or one of its layers. */
export interface UploadBlob {
  /** `sha256:` and 64 hex digits. */
  digest: string;
  sizeBytes: number;
  /** How many bytes the platform has. Equal to `sizeBytes` only if the blob is complete and matches its digest. */
  offset: number;
}

/** What the platform has of an image that a client uploads. */
export interface Upload {
  /** The reference for machines and pulls: `upload:NAME@sha256:...`. */
  ref: string;
  /** Digest of the manifest. */
  digest: string;
  /** Whether the image itself is on the platform. Then nothing has to be sent. */
  ready: boolean;
  /** Each blob once, the configuration first. */
  blobs: UploadBlob[];
}

/** An upload that has not ended, for lists. */
export interface OpenUpload {
  ref: string;
  digest: string;
  sizeBytes: number;
  /** How much of that the platform has, in bytes. */
  doneBytes: number;
  /** When a client last sent something, RFC 3339. */
  usedAt: string;
}

/** Receives images from clients on other machines, blob by blob. What has arrived survives the end of the platform. */
export interface ImageUploads {
  /**
   * Begins an upload, or continues one. Rejects with a HibernautError: `invalid_argument` (bad name or manifest, another
   * architecture), `payload_too_large` (above the limit by itself) or `resource_exhausted` (with what others upload).
   */
  begin(name: string, manifest: string): Promise<Upload>;
  /**
   * Appends bytes to a blob of an upload that has begun. Returns how many bytes the platform has then. Rejects with
   * `not_found` (no upload needs the blob), `aborted` (the platform has more or fewer bytes than `offset`, or the bytes
   * broke off: `details.offset` says where to continue), `deadline_exceeded` (nothing came for a while) or
   * `invalid_argument` (too many bytes, or a digest that does not match).
   */
  append(digest: string, offset: number, bytes: Readable, signal: AbortSignal): Promise<UploadBlob>;
  /** Lists the uploads that have not ended, the one used last first. */
  list(): Promise<OpenUpload[]>;
  /** Ends an upload and deletes its unfinished blobs. False when there is none of that digest. */
  cancel(digest: string): Promise<boolean>;
}

/** Logins for registries. Passwords can be stored but not read. */
export interface RegistryLogins {
  /** Lists all logins, sorted by host. */
  list(): Promise<{ host: string; username: string }[]>;
  /** Returns the login for a host. Undefined when there is none. */
  get(host: string): Promise<{ host: string; username: string } | undefined>;
  /** Stores a login. Rejects with a HibernautError when the registry does not accept it or does not answer. */
  put(host: string, login: Login, signal?: AbortSignal): Promise<void>;
  /** Deletes the login for a host. False when there was none. */
  delete(host: string): Promise<boolean>;
}

/** Images as the API manages them. */
export interface ImageLibrary {
  /** Lists all images, newest first, and whether machines need them. */
  list(): Promise<(StoredImage & { inUse: boolean })[]>;
  /** Imports an image unless it is cached. Rejects like {@link ImageStore.ensure}. */
  pull(ref: string, options?: EnsureOptions): Promise<Image>;
  /** Deletes all images that no machine needs, and the downloaded layers. */
  prune(): Promise<{ digests: string[]; freedBytes: number }>;
}
