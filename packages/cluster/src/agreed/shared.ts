/** How the API changes what all hosts of a cluster share. On a host alone, the same work is done at once on its own store. */
import type { AppRecord } from "@hibernaut/domain/machine";
import type { Quotas, Resources } from "@hibernaut/machines";
import type { TokenStore } from "@hibernaut/store";

export interface SharedParts {
  apps: Pick<Resources["apps"], "create" | "get" | "setStatusPage" | "setPlace">;
  hostnames: Pick<Resources["hostnames"], "add" | "remove">;
  previews: Pick<Resources["previews"], "put" | "expire">;
  secrets: Pick<Resources["secrets"], "set" | "unset" | "copy">;
  releases: Pick<Resources["releases"], "begin" | "end" | "renew" | "list">;
  quotas: Pick<Quotas, "set">;
  tokens: TokenStore;
}

/**
 * Carries out a change with the parts it is given, all or nothing, and resolves with what `work` returned. In a cluster,
 * `work` may be called again when someone else changed the same records meanwhile, so it has no other effects.
 */
export type Write = <T>(work: (parts: SharedParts) => T | Promise<T>) => Promise<T>;

/** How previews end whose time is over. */
export interface PreviewEnds {
  /** Whether this host decides that. */
  decides(): boolean;
  /** Stores that the time of a preview is over. False when it was renewed, or is gone. */
  expire(preview: AppRecord): Promise<boolean>;
  /** Destroys what this host has of it; on the host that decides, then the preview. */
  destroy(preview: AppRecord): Promise<void>;
}

/** The records that all hosts of a cluster share. */
export interface SharedRecords {
  readonly host: string;
  write: Write;
  /** Resolves once this host knows of all changes that ended before the call, or after a second. */
  catchUp(): Promise<void>;
  /** The host that the client of a release reports to. Undefined when there is no such release. */
  reporterOf(app: string, version: number): string | undefined;
  /**
   * Deletes an app. `empty` destroys its machines and volumes on all hosts, or rejects because there are any. With `createdAt`, an
   * app that was created at another time stays.
   */
  deleteApp(app: string, empty: () => Promise<void>, createdAt?: string): Promise<void>;
  readonly previewEnds: PreviewEnds;
  /** Begins to follow the records. Until then, and until the directory has answered, nothing can be changed. */
  start(): void;
  /** Tells the other hosts soon of a token that this host has made by itself. */
  publishToken(id: string): void;
  close(): void;
}
