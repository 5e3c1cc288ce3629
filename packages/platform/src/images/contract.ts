/** What the platform asks of its image store: an image reference in, a root file system out. */

/** What the image says about running it, as in the OCI image configuration. */
export interface ImageConfig {
  entrypoint: string[];
  cmd: string[];
  /** `NAME=value` each. */
  env: string[];
  /** `user[:group]`; empty is root. */
  user: string;
  workingDir: string;
  /** `SIGTERM`, `15`, ...; absent means SIGTERM. */
  stopSignal?: string;
}

export interface Image {
  /** The reference that was asked for. */
  ref: string;
  /** Digest of the image's manifest: `sha256:` and 64 hex digits. */
  digest: string;
  /** Absolute path of the root file system (squashfs). */
  rootfs: string;
  config: ImageConfig;
  /** Size of the root file system file. */
  sizeBytes: number;
}

/** A step of a long import, for progress displays. */
export type ImageProgress =
  | { step: "resolve" | "copy" | "unpack" | "pack" }
  | {
      step: "download";
      /** Digest of the layer this is about, and what is there of it. */
      layer: string;
      doneBytes: number;
      totalBytes: number;
      /** All layers of the image together, also those that need no download. */
      imageDoneBytes: number;
      imageTotalBytes: number;
    };

export interface EnsureOptions {
  signal?: AbortSignal;
  onProgress?(progress: ImageProgress): void;
}

/** An image that is not deleted until it is disposed of: `using image = await images.hold(ref)`. */
export type HeldImage = Image & Disposable;

/** An image on the disk, for lists. */
export interface StoredImage {
  digest: string;
  /** The reference that brought it; undefined for one that an older version imported. */
  ref: string | undefined;
  sizeBytes: number;
  /** RFC 3339. */
  importedAt: string;
}

/** Which images to delete. */
export interface CollectOptions {
  /** Images that were asked for, or in use, less than this ago are kept. Default: 0, none are. */
  unusedForMs?: number;
}

/** Who we are at a registry. */
export interface Login {
  username: string;
  password: string;
}

export interface ImageStore {
  /**
   * Resolves the reference and builds its root file system unless it is cached. Concurrent calls
   * for one image share one build. Rejects with a HibernautError: `invalid_argument` (bad reference,
   * unsupported kind or architecture, corrupt image), `not_found`, `unavailable` (registry does not
   * answer, disk full).
   */
  ensure(ref: string, options?: EnsureOptions): Promise<Image>;
  /**
   * The same, and the image stays until it is disposed of: a machine that is made of it can be stored meanwhile.
   * An image from `ensure` may be collected the moment after.
   */
  hold(ref: string, options?: EnsureOptions): Promise<HeldImage>;
  /** The cached image, or undefined. */
  get(digest: string): Promise<Image | undefined>;
  /** All images, the newest first. */
  list(): Promise<StoredImage[]>;
  /**
   * Deletes images whose digest is not among `inUse()`, and leftovers of broken imports; returns the digests deleted.
   * `inUse` is asked again before each deletion: a machine may have been made since.
   */
  collect(inUse: () => ReadonlySet<string>, options?: CollectOptions): Promise<string[]>;
  /** Deletes downloaded layers that no pull under way needs; returns the bytes that were freed. */
  dropLayers(): Promise<number>;
}

/** Logins for registries. Passwords go in and never out. */
export interface RegistryLogins {
  list(): Promise<{ host: string; username: string }[]>;
  /** Undefined when the platform has none for that host. */
  get(host: string): Promise<{ host: string; username: string } | undefined>;
  /** Stores a login that the registry takes. Rejects with a HibernautError when it does not, or does not answer. */
  put(host: string, login: Login, signal?: AbortSignal): Promise<void>;
  /** Whether there was one. */
  delete(host: string): Promise<boolean>;
}

/** What the API shows of images: all of them, with whether machines need them. */
export interface ImageLibrary {
  list(): Promise<(StoredImage & { inUse: boolean })[]>;
  pull(ref: string, options?: EnsureOptions): Promise<Image>;
  /** Deletes every image that no machine needs, and the downloaded layers. */
  prune(): Promise<{ digests: string[]; freedBytes: number }>;
}
