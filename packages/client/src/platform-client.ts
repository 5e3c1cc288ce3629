/** Methods about the platform: its health, images, registries, backups, usage and tokens. */
import { BackupClient } from "./backup-client.ts";
import { type EventsOptions, followEvents, readEvents, type StreamEntry, type StreamPosition } from "./events.ts";
import type {
  AuditOptions,
  HostDrainOptions,
  NewTokenOptions,
  PullOptions,
  RotateTokenOptions,
  UsageOptions,
} from "./options.ts";
import { readHostDrain, readPull } from "./progress.ts";
import { type CallOptions } from "./transport.ts";
import type {
  AuditEntry,
  Backup,
  Cluster,
  Drain,
  DrainedHost,
  DrainRequest,
  Evacuation,
  Health,
  Image,
  JoinToken,
  NewToken,
  OpenUpload,
  PrunedImages,
  PulledImage,
  Region,
  RegistryLogin,
  Token,
  UsageReport,
} from "./types.ts";

/** The part of the client about the platform itself. See {@link BackupClient}. */
export abstract class PlatformClient extends BackupClient {
  /** Returns what the platform is. Rejects with `unavailable` when it doesn't work. */
  getHealth(options?: CallOptions): Promise<Health> {
    return this.call("get", "/v1/health", { ...options });
  }

  /** Returns the platform's regions. */
  async listRegions(options?: CallOptions): Promise<Region[]> {
    return (await this.call("get", "/v1/platform/regions", { ...options })).regions;
  }

  /** Returns the platform's drain and how far it has come. */
  getDrain(options?: CallOptions): Promise<Drain> {
    return this.call("get", "/v1/platform/drain", { ...options });
  }

  /** Stops the platform from starting machines, and with `suspend` suspends those that run. Resolves when that is stored. */
  startDrain(body: DrainRequest = {}, options?: CallOptions): Promise<Drain> {
    return this.call("post", "/v1/platform/drain", { body, ...options });
  }

  /** Ends the platform's drain. The machines that it suspended start again. */
  endDrain(options?: CallOptions): Promise<Drain> {
    return this.call("delete", "/v1/platform/drain", { ...options });
  }

  /** Gives the machines of a lost host to other hosts, which start them from scratch. What they had there is given up. */
  evacuateHost(host: string, options?: CallOptions): Promise<Evacuation> {
    return this.call("post", "/v1/cluster/hosts/{host}/evacuate", {
      params: { host },
      body: { dead: true },
      ...options,
    });
  }

  /** Moves all machines off a host, which takes no new ones until {@link undrainHost}. */
  drainHost(host: string, { withVolumes, onProgress, ...options }: HostDrainOptions = {}): Promise<DrainedHost> {
    const body = { with_volumes: withVolumes };
    const lines = this.lines("post", "/v1/cluster/hosts/{host}/drain", { params: { host }, body, ...options });
    return readHostDrain(lines, onProgress);
  }

  /** Lets a drained host take machines again. */
  async undrainHost(host: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/cluster/hosts/{host}/drain", { params: { host }, ...options });
  }

  /** Returns the cluster that the platform belongs to, with its hosts. Rejects with `not_found` when there is none. */
  getCluster(options?: CallOptions): Promise<Cluster> {
    return this.call("get", "/v1/cluster", { ...options });
  }

  /** Creates a token with which one host can join the cluster, by default within an hour. */
  createJoinToken(body: { expires_in?: number } = {}, options?: CallOptions): Promise<JoinToken> {
    return this.call("post", "/v1/cluster/tokens", { body, ...options });
  }

  /** Gives up the disputed copy of a machine, by its whole id, that the host which answers keeps. */
  async dropDisputedMachine(id: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/cluster/disputed/{machine_id}", { params: { machine_id: id }, ...options });
  }

  /** Removes a host that is gone for good from the cluster. */
  async removeHost(host: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/cluster/hosts/{host}", { params: { host }, ...options });
  }

  /** Returns how far the latest backup came. */
  getBackup(options?: CallOptions): Promise<Backup> {
    return this.call("get", "/v1/platform/backup", { ...options });
  }

  /** Pulls an image and resolves when it is ready. An aborted pull keeps what it has downloaded. */
  pullImage(ref: string, { onProgress, ...options }: PullOptions = {}): Promise<PulledImage> {
    return readPull(this.lines("post", "/v1/images/pull", { body: { ref }, ...options }), onProgress);
  }

  /** Returns the uploads that have not ended. */
  async listUploads(options?: CallOptions): Promise<OpenUpload[]> {
    return (await this.call("get", "/v1/images/uploads", { ...options })).uploads;
  }

  /** Cancels an upload, by the digest of its image, and deletes its unfinished parts. */
  async cancelUpload(digest: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/images/uploads/{digest}", { params: { digest }, ...options });
  }

  /** Returns the images on the host's disk, newest first. */
  async listImages(options?: CallOptions): Promise<Image[]> {
    return (await this.call("get", "/v1/images", { ...options })).images;
  }

  /** Deletes the images that no machine needs, and the downloaded layers. */
  pruneImages(options?: CallOptions): Promise<PrunedImages> {
    return this.call("delete", "/v1/images", { query: { unused: "true" }, ...options });
  }

  /** Returns the platform's logins for registries, without their passwords. */
  async listRegistryLogins(options?: CallOptions): Promise<RegistryLogin[]> {
    return (await this.call("get", "/v1/registries", { ...options })).registries;
  }

  /** Returns the login for a registry. */
  getRegistryLogin(host: string, options?: CallOptions): Promise<RegistryLogin> {
    return this.call("get", "/v1/registries/{host}", { params: { host }, ...options });
  }

  /** Stores a login for a registry, once the registry has accepted it. */
  logInToRegistry(
    host: string,
    body: { username: string; password: string },
    options?: CallOptions,
  ): Promise<RegistryLogin> {
    return this.call("put", "/v1/registries/{host}", { params: { host }, body, ...options });
  }

  /** Deletes the login for a registry. */
  async logOutOfRegistry(host: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/registries/{host}", { params: { host }, ...options });
  }

  /** Reads past events of the platform, oldest first: the last hundred, unless `since` or `tail` say otherwise. */
  async *readEvents(options: EventsOptions = {}): AsyncGenerator<StreamEntry, void> {
    const start = options.since === undefined ? { tail: options.tail ?? 100 } : {};
    for await (const one of readEvents(this.#events({ ...options, ...start }, "0"))) if ("type" in one) yield one;
  }

  /**
   * Follows what changes on the platform: past events first, where `since` or `tail` ask for them. Connects again when
   * the connection is lost, and continues where it was. Events that are gone by then are told as a gap.
   */
  async *followEvents(options: EventsOptions = {}): AsyncGenerator<StreamEntry, void> {
    const open = (since: StreamPosition | undefined, signal: AbortSignal | undefined) => {
      const now = { ...options, ...(signal && { signal }) };
      // What was in the tail has been read when there is a number to continue after.
      return this.#events(since === undefined ? now : { ...now, since, tail: undefined }, "1");
    };
    yield* followEvents(open, options);
  }

  #events(
    {
      app,
      machine,
      type,
      since,
      tail,
      signal,
    }: Pick<EventsOptions, "app" | "machine" | "type" | "since" | "signal"> & { tail?: number | undefined },
    follow: "0" | "1",
  ): AsyncGenerator<string> {
    const types = type === undefined ? undefined : [type].flat();
    return this.lines("get", "/v1/stream", {
      query: { app, machine, type: types, since: since === undefined ? undefined : String(since), tail, follow },
      ...(signal && { signal }),
    });
  }

  /** Returns what apps used, by app, machine or day. */
  getUsage({ from, to, group_by, app, ...options }: UsageOptions = {}): Promise<UsageReport> {
    return this.call("get", "/v1/usage", { query: { from, to, group_by, app }, ...options });
  }

  /** Reads who changed what, oldest first, and with `follow` continues as changes come. */
  async *readAudit({
    app,
    token,
    since,
    limit,
    follow,
    ...options
  }: AuditOptions = {}): AsyncGenerator<AuditEntry, void> {
    const query = { app, token, since, limit, ...(follow === true && { follow: "1" as const }) };
    for await (const line of this.lines("get", "/v1/audit", { query, ...options }))
      yield JSON.parse(line) as AuditEntry;
  }

  /** Returns the API's tokens, without their secrets. */
  async listTokens(options?: CallOptions): Promise<Token[]> {
    return (await this.call("get", "/v1/tokens", { ...options })).tokens;
  }

  /** Creates a token, which by default may do everything. Its secret is in the reply, and nowhere else ever after. */
  createToken(
    name: string,
    { scopes, apps, previews, expires_in, e2b, ...options }: NewTokenOptions = {},
  ): Promise<NewToken> {
    return this.call("post", "/v1/tokens", { body: { name, scopes, apps, previews, expires_in, e2b }, ...options });
  }

  /** Creates a token with the rights of another, which stays valid for a while. */
  rotateToken(
    id: string,
    { overlap, expires_in, ...options }: RotateTokenOptions = {},
  ): Promise<{ token: NewToken; old: { id: string; valid_until: string } }> {
    const request = { params: { token_id: id }, body: { overlap, expires_in }, ...options };
    return this.call("post", "/v1/tokens/{token_id}/rotate", request);
  }

  /** Revokes a token. */
  async revokeToken(id: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/tokens/{token_id}", { params: { token_id: id }, ...options });
  }
}
