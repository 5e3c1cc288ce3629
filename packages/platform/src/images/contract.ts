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

/** A step of a long import, for progress displays. `percent` is absent while unknown. */
export interface ImageProgress {
  step: "resolve" | "copy" | "unpack" | "pack";
  percent?: number;
}

export interface ImageStore {
  /**
   * Resolves the reference and builds its root file system unless it is cached. Concurrent calls
   * for one image share one build. Rejects with a HibernautError: `invalid_argument` (bad reference,
   * unsupported kind or architecture, corrupt image), `not_found`, `unavailable` (registry does not
   * answer, disk full).
   */
  ensure(ref: string, options?: { signal?: AbortSignal; onProgress?(progress: ImageProgress): void }): Promise<Image>;
  /** The cached image, or undefined. */
  get(digest: string): Promise<Image | undefined>;
  /** Deletes images whose digest is not in `inUse` and leftovers of broken imports; returns the digests deleted. */
  collect(inUse: ReadonlySet<string>): Promise<string[]>;
}
