/** The HTTP API as methods. */
import type { Readable } from "node:stream";
import type { ExecOptions, ExecSession } from "./exec.ts";
import type {
  DestroyOptions,
  DryRunOptions,
  ImageSource,
  LimitOptions,
  LogsOptions,
  MachineUsageOptions,
  PullOptions,
  ReleaseCommandOptions,
  StartOptions,
  UpdateOptions,
  UploadOptions,
  UsageOptions,
  WaitOptions,
  WriteArchiveOptions,
} from "./options.ts";
import { readPull } from "./pull.ts";
import { readReleaseCommand } from "./release-command.ts";
import type { Method, Path, RouteReply, RouteRequest } from "./routes.ts";
import { type CallOptions, type ClientOptions, send, sendForLines } from "./transport.ts";
import type {
  Activity,
  App,
  Backup,
  CreateMachineRequest,
  CreateReleaseRequest,
  CreateVolumeRequest,
  Drain,
  DrainRequest,
  ExecRequest,
  ExecResult,
  ExtendedVolume,
  Health,
  Image,
  LogEntry,
  Machine,
  MachineConfig,
  MachineEvent,
  MachinePath,
  MachineState,
  NewToken,
  OpenUpload,
  PrunedImages,
  PulledImage,
  Region,
  RegistryLogin,
  Release,
  ReleaseCommandEnd,
  Secret,
  SecretsEffect,
  Token,
  UnpackedArchive,
  UpdateReleaseRequest,
  UpdateVolumeRequest,
  UsageReport,
  Volume,
  VolumeSnapshot,
} from "./types.ts";
import { sendImage } from "./upload.ts";

/**
 * A client of one platform. Every method rejects with an `ApiError`, or with the signal's reason when you abort it.
 * Apps are named by their names; machines and volumes by id, by name, or by the beginning of the id.
 *
 * @example
 * const client = new HibernautClient({ apiUrl: "http://127.0.0.1:4280", token });
 * const machine = await client.createMachine("shop", { config: { image: "oci:/srv/shop" } });
 * await client.waitForMachine("shop", machine.id);
 */
export class HibernautClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The platform's address, as it was given. */
  get apiUrl(): string {
    return this.#options.apiUrl;
  }

  /** Returns what the platform is. Rejects with `unavailable` when it doesn't work. */
  getHealth(options?: CallOptions): Promise<Health> {
    return this.#call("get", "/v1/health", { ...options });
  }

  /** Returns the platform's regions. */
  async listRegions(options?: CallOptions): Promise<Region[]> {
    return (await this.#call("get", "/v1/platform/regions", { ...options })).regions;
  }

  /** Returns the platform's drain and how far it has come. */
  getDrain(options?: CallOptions): Promise<Drain> {
    return this.#call("get", "/v1/platform/drain", { ...options });
  }

  /** Stops the platform from starting machines, and with `suspend` suspends those that run. Resolves when that is stored. */
  startDrain(body: DrainRequest = {}, options?: CallOptions): Promise<Drain> {
    return this.#call("post", "/v1/platform/drain", { body, ...options });
  }

  /** Ends the platform's drain. The machines that it suspended start again. */
  endDrain(options?: CallOptions): Promise<Drain> {
    return this.#call("delete", "/v1/platform/drain", { ...options });
  }

  /**
   * Backs up the whole platform. Resolves with a tar archive of a data directory, which holds all secrets. Its stream fails
   * if the archive is not whole; `getBackup` then says why.
   */
  async createBackup({ signal }: CallOptions = {}): Promise<Readable> {
    const { readArchive } = await import("./archive.ts");
    return readArchive(this.#options, { path: "/v1/platform/backup" }, { method: "POST", signal });
  }

  /** Returns how far the latest backup came. */
  getBackup(options?: CallOptions): Promise<Backup> {
    return this.#call("get", "/v1/platform/backup", { ...options });
  }

  /** Returns all apps. */
  async listApps(options?: CallOptions): Promise<App[]> {
    return (await this.#call("get", "/v1/apps", { ...options })).apps;
  }

  /** Creates an app. */
  createApp(name: string, options?: CallOptions): Promise<App> {
    return this.#call("post", "/v1/apps", { body: { app_name: name }, ...options });
  }

  /** Returns an app. */
  getApp(name: string, options?: CallOptions): Promise<App> {
    return this.#call("get", "/v1/apps/{app_name}", { params: { app_name: name }, ...options });
  }

  /** Destroys an app. One that has machines or volumes needs `force`, which destroys them, too. */
  async destroyApp(name: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    const query = { force };
    await this.#call("delete", "/v1/apps/{app_name}", { params: { app_name: name }, query, ...options });
  }

  /** Returns an app's releases, newest first. Default limit: 25. */
  async listReleases(app: string, { limit, ...options }: LimitOptions = {}): Promise<Release[]> {
    const request = { params: { app_name: app }, query: { limit }, ...options };
    return (await this.#call("get", "/v1/apps/{app_name}/releases", request)).releases;
  }

  /** Pulls the image and records that it is being deployed. Changes no machine. */
  createRelease(app: string, body: CreateReleaseRequest, options?: CallOptions): Promise<Release> {
    return this.#call("post", "/v1/apps/{app_name}/releases", { params: { app_name: app }, body, ...options });
  }

  /** Records how a release ended. */
  updateRelease(app: string, version: number, body: UpdateReleaseRequest, options?: CallOptions): Promise<Release> {
    const params = { app_name: app, version: String(version) };
    return this.#call("post", "/v1/apps/{app_name}/releases/{version}", { params, body, ...options });
  }

  /**
   * Runs the command of a pending release in a temporary machine: what `init` of the configuration says, with the image of
   * the release. Resolves when the machine is gone. To cancel, abort the signal.
   *
   * @param options `timeout` is in seconds, 300 by default; `onLine` is called with each line of the machine's log
   */
  runReleaseCommand(
    app: string,
    version: number,
    config: MachineConfig,
    { timeout, onLine, ...options }: ReleaseCommandOptions = {},
  ): Promise<ReleaseCommandEnd> {
    const params = { app_name: app, version: String(version) };
    const body = { config, ...(timeout !== undefined && { timeout }) };
    const path = "/v1/apps/{app_name}/releases/{version}/command";
    return readReleaseCommand(this.#lines("post", path, { params, body, ...options }), onLine);
  }

  /** Returns an app's volumes, oldest first. */
  listVolumes(app: string, options?: CallOptions): Promise<Volume[]> {
    return this.#call("get", "/v1/apps/{app_name}/volumes", { params: { app_name: app }, ...options });
  }

  /** Returns a volume. */
  getVolume(app: string, id: string, options?: CallOptions): Promise<Volume> {
    const params = { app_name: app, volume_id: id };
    return this.#call("get", "/v1/apps/{app_name}/volumes/{volume_id}", { params, ...options });
  }

  /** Creates a volume, empty or from a snapshot. */
  createVolume(app: string, body: CreateVolumeRequest, options?: CallOptions): Promise<Volume> {
    return this.#call("post", "/v1/apps/{app_name}/volumes", { params: { app_name: app }, body, ...options });
  }

  /** Changes how snapshots of a volume are taken and kept. */
  updateVolume(app: string, id: string, body: UpdateVolumeRequest, options?: CallOptions): Promise<Volume> {
    const params = { app_name: app, volume_id: id };
    return this.#call("put", "/v1/apps/{app_name}/volumes/{volume_id}", { params, body, ...options });
  }

  /** Extends a volume to `sizeGb` GB. Its machine sees the new size after its next cold start. */
  extendVolume(app: string, id: string, sizeGb: number, options?: CallOptions): Promise<ExtendedVolume> {
    const request = { params: { app_name: app, volume_id: id }, body: { size_gb: sizeGb }, ...options };
    return this.#call("put", "/v1/apps/{app_name}/volumes/{volume_id}/extend", request);
  }

  /** Destroys a volume and its snapshots. Rejects when a machine uses it. */
  async destroyVolume(app: string, id: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, volume_id: id };
    await this.#call("delete", "/v1/apps/{app_name}/volumes/{volume_id}", { params, ...options });
  }

  /** Returns a volume's snapshots, newest first. */
  listVolumeSnapshots(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot[]> {
    const params = { app_name: app, volume_id: id };
    return this.#call("get", "/v1/apps/{app_name}/volumes/{volume_id}/snapshots", { params, ...options });
  }

  /** Takes a snapshot of a volume. Resolves when the copy is complete. */
  createVolumeSnapshot(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot> {
    const params = { app_name: app, volume_id: id };
    return this.#call("post", "/v1/apps/{app_name}/volumes/{volume_id}/snapshots", { params, ...options });
  }

  /** Destroys a snapshot of a volume. */
  async destroyVolumeSnapshot(app: string, id: string, snapshotId: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, volume_id: id, snapshot_id: snapshotId };
    const path = "/v1/apps/{app_name}/volumes/{volume_id}/snapshots/{snapshot_id}";
    await this.#call("delete", path, { params, ...options });
  }

  /** Returns the hostnames that an app answers for, in addition to `<app>.localhost`. */
  async listHostnames(app: string, options?: CallOptions): Promise<string[]> {
    const request = { params: { app_name: app }, ...options };
    return (await this.#call("get", "/v1/apps/{app_name}/hostnames", request)).hostnames;
  }

  /** Lets an app answer for a hostname. Returns the hostname as it is stored. */
  async addHostname(app: string, hostname: string, options?: CallOptions): Promise<string> {
    const request = { params: { app_name: app }, body: { hostname }, ...options };
    return (await this.#call("post", "/v1/apps/{app_name}/hostnames", request)).hostname;
  }

  /** Takes a hostname away from an app. */
  async removeHostname(app: string, hostname: string, options?: CallOptions): Promise<void> {
    const params = { app_name: app, hostname };
    await this.#call("delete", "/v1/apps/{app_name}/hostnames/{hostname}", { params, ...options });
  }

  /** Returns an app's secrets, without their values. */
  async listSecrets(app: string, options?: CallOptions): Promise<Secret[]> {
    return (await this.#call("get", "/v1/apps/{app_name}/secrets", { params: { app_name: app }, ...options })).secrets;
  }

  /** Sets all of these secrets or none. Snapshots of the app's machines are discarded. */
  setSecrets(
    app: string,
    secrets: Record<string, string>,
    { dry_run, ...options }: DryRunOptions = {},
  ): Promise<SecretsEffect> {
    const request = { params: { app_name: app }, query: { dry_run }, body: { secrets }, ...options };
    return this.#call("post", "/v1/apps/{app_name}/secrets", request);
  }

  /** Removes a secret. Snapshots of the app's machines are discarded. */
  unsetSecret(app: string, name: string, { dry_run, ...options }: DryRunOptions = {}): Promise<SecretsEffect> {
    const request = { params: { app_name: app, secret_name: name }, query: { dry_run }, ...options };
    return this.#call("delete", "/v1/apps/{app_name}/secrets/{secret_name}", request);
  }

  /** Returns the machines of all apps. */
  listAllMachines(options?: CallOptions): Promise<Machine[]> {
    return this.#call("get", "/v1/machines", { ...options });
  }

  /** Returns an app's machines. */
  listMachines(app: string, options?: CallOptions): Promise<Machine[]> {
    return this.#call("get", "/v1/apps/{app_name}/machines", { params: { app_name: app }, ...options });
  }

  /** Creates a machine and starts it, unless `skip_launch` is set. Resolves before it is running. */
  createMachine(app: string, body: CreateMachineRequest, options?: CallOptions): Promise<Machine> {
    return this.#call("post", "/v1/apps/{app_name}/machines", { params: { app_name: app }, body, ...options });
  }

  /** Returns a machine. */
  getMachine(app: string, id: string, options?: CallOptions): Promise<Machine> {
    return this.#call("get", MACHINE, { params: machineParams(app, id), ...options });
  }

  /**
   * Gives a machine a complete new configuration. Without one, the machine moves to the current guest bundle, at
   * its next cold start if it has a snapshot, and nothing else changes.
   */
  updateMachine(
    app: string,
    id: string,
    config?: MachineConfig,
    { prewarm, ...options }: UpdateOptions = {},
  ): Promise<Machine> {
    const body = { ...(config !== undefined && { config }), ...(prewarm !== undefined && { prewarm }) };
    return this.#call("post", MACHINE, { params: machineParams(app, id), body, ...options });
  }

  /** Destroys a machine. A running one needs `force`. */
  async destroyMachine(app: string, id: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    await this.#call("delete", MACHINE, { params: machineParams(app, id), query: { force }, ...options });
  }

  /**
   * Resumes a machine, or starts it cold. Resolves with the state that it was in, as soon as the platform has accepted
   * the action, and so do the other actions. Use {@link waitForMachine} to wait for the result.
   */
  startMachine(
    app: string,
    id: string,
    { reason, ...options }: StartOptions = {},
  ): Promise<{ previous_state: MachineState }> {
    const body = reason === undefined ? {} : { reason };
    return this.#call("post", `${MACHINE}/start`, { params: machineParams(app, id), body, ...options });
  }

  /** Suspends a machine to a snapshot. */
  async suspendMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#call("post", `${MACHINE}/suspend`, { params: machineParams(app, id), ...options });
  }

  /** Stops a machine and discards its snapshot. */
  async stopMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#call("post", `${MACHINE}/stop`, { params: machineParams(app, id), ...options });
  }

  /** Stops a machine and starts it cold. */
  async restartMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#call("post", `${MACHINE}/restart`, { params: machineParams(app, id), ...options });
  }

  /** Takes a machine out of the proxy's hands: it gets no requests, is not woken, and is not put to sleep. */
  async cordonMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#call("post", `${MACHINE}/cordon`, { params: machineParams(app, id), ...options });
  }

  /** Gives a cordoned machine requests again. */
  async uncordonMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#call("post", `${MACHINE}/uncordon`, { params: machineParams(app, id), ...options });
  }

  /** Waits for a state and returns the one that was reached. Rejects with `deadline_exceeded` after the timeout. */
  async waitForMachine(
    app: string,
    id: string,
    { state, timeout, ...options }: WaitOptions = {},
  ): Promise<MachineState> {
    const query = { state: joined(state), timeout };
    return (await this.#call("get", `${MACHINE}/wait`, { params: machineParams(app, id), query, ...options })).state;
  }

  /** Returns a machine's history, newest first. Default limit: 100. */
  listMachineEvents(app: string, id: string, { limit, ...options }: LimitOptions = {}): Promise<MachineEvent[]> {
    return this.#call("get", `${MACHINE}/events`, { params: machineParams(app, id), query: { limit }, ...options });
  }

  /** Returns what a machine is used for at the moment, and why it does not sleep. */
  getMachineActivity(app: string, id: string, options?: CallOptions): Promise<Activity> {
    return this.#call("get", `${MACHINE}/activity`, { params: machineParams(app, id), ...options });
  }

  /** Reads the logs of an app's machines up to now, oldest line first. */
  readLogs(app: string, options?: LogsOptions): AsyncGenerator<LogEntry, void> {
    return this.#logs(app, options);
  }

  /**
   * Reads the logs of an app's machines and continues with new lines as they come, until the machines are destroyed.
   * Without `machine`, the lines of machines that are created meanwhile are included.
   *
   * @example
   * for await (const { at, text } of client.followLogs("shop", { signal })) console.log(at, text);
   */
  followLogs(app: string, options?: LogsOptions): AsyncGenerator<LogEntry, void> {
    return this.#logs(app, options, "1");
  }

  /** Runs a command in a machine and resolves when the command has ended. */
  runExec(app: string, id: string, body: ExecRequest, options?: CallOptions): Promise<ExecResult> {
    return this.#call("post", `${MACHINE}/exec`, { params: machineParams(app, id), body, ...options });
  }

  /** Starts a command in a machine and streams its input and outputs. */
  async openExec(app: string, id: string, exec: ExecOptions): Promise<ExecSession> {
    const { openExec } = await import("./exec.ts");
    return openExec(this.#options, { path: `${MACHINE}/exec`, params: machineParams(app, id) }, exec);
  }

  /**
   * Connects to a TCP port inside a machine, on its loopback interface. Wakes the machine. `stdin` is what its program
   * receives, `stdout` what it sends; each may end first. `exit` says how it ended: `exit_code` 2 if nothing listens there.
   */
  async openForward(app: string, id: string, port: number): Promise<ExecSession> {
    const { openForward } = await import("./exec.ts");
    return openForward(this.#options, { path: `${MACHINE}/forward`, params: machineParams(app, id), query: { port } });
  }

  /** Returns what is at an absolute path in a running machine. Rejects with `not_found` if nothing is. */
  getMachinePath(app: string, id: string, path: string, options?: CallOptions): Promise<MachinePath> {
    return this.#call("get", `${MACHINE}/archive/stat`, {
      params: machineParams(app, id),
      query: { path },
      ...options,
    });
  }

  /**
   * Copies a file or directory out of a machine. Resolves with a tar archive, whose stream fails if the archive is not
   * whole. Its entries begin with the last part of the path.
   */
  async readArchive(app: string, id: string, path: string, { signal }: CallOptions = {}): Promise<Readable> {
    const { readArchive } = await import("./archive.ts");
    return readArchive(
      this.#options,
      { path: `${MACHINE}/archive`, params: machineParams(app, id), query: { path } },
      { signal },
    );
  }

  /**
   * Unpacks a tar archive in a directory of a machine. Resolves when everything is there. The files belong to the
   * image's user, or with `owner: "archive"` to whom the archive says.
   */
  async writeArchive(
    app: string,
    id: string,
    path: string,
    archive: Readable,
    { owner, signal }: WriteArchiveOptions = {},
  ): Promise<UnpackedArchive> {
    const { writeArchive } = await import("./archive.ts");
    const address = { path: `${MACHINE}/archive`, params: machineParams(app, id), query: { path, owner } };
    return writeArchive(this.#options, address, archive, signal);
  }

  /** Pulls an image and resolves when it is ready. An aborted pull keeps what it has downloaded. */
  pullImage(ref: string, { onProgress, ...options }: PullOptions = {}): Promise<PulledImage> {
    return readPull(this.#lines("post", "/v1/images/pull", { body: { ref }, ...options }), onProgress);
  }

  /**
   * Uploads an image from this machine and resolves when it is ready, with the reference for machines and releases. Sends
   * only what the platform does not have, and continues after a lost connection. An aborted upload keeps what has
   * arrived: the next one continues.
   */
  async uploadImage(
    source: ImageSource,
    { onProgress, retryMs, ...options }: UploadOptions = {},
  ): Promise<PulledImage> {
    const body = { name: source.name, manifest: source.manifest };
    const path = "/v1/images/blobs/{digest}";
    const ref = await sendImage(
      source,
      {
        begin: (signal) => this.#call("post", "/v1/images/uploads", { body, signal }),
        append: (digest, offset, bytes, signal) =>
          send(this.#options, { method: "patch", path, params: { digest }, query: { offset }, bytes, signal }),
      },
      { ...options, ...(onProgress && { onProgress }), ...(retryMs !== undefined && { retryMs }) },
    );
    return this.pullImage(ref, { ...options, ...(onProgress && { onProgress }) });
  }

  /** Returns the uploads that have not ended. */
  async listUploads(options?: CallOptions): Promise<OpenUpload[]> {
    return (await this.#call("get", "/v1/images/uploads", { ...options })).uploads;
  }

  /** Cancels an upload, by the digest of its image, and deletes its unfinished parts. */
  async cancelUpload(digest: string, options?: CallOptions): Promise<void> {
    await this.#call("delete", "/v1/images/uploads/{digest}", { params: { digest }, ...options });
  }

  /** Returns the images on the host's disk, newest first. */
  async listImages(options?: CallOptions): Promise<Image[]> {
    return (await this.#call("get", "/v1/images", { ...options })).images;
  }

  /** Deletes the images that no machine needs, and the downloaded layers. */
  pruneImages(options?: CallOptions): Promise<PrunedImages> {
    return this.#call("delete", "/v1/images", { query: { unused: "true" }, ...options });
  }

  /** Returns the platform's logins for registries, without their passwords. */
  async listRegistryLogins(options?: CallOptions): Promise<RegistryLogin[]> {
    return (await this.#call("get", "/v1/registries", { ...options })).registries;
  }

  /** Returns the login for a registry. */
  getRegistryLogin(host: string, options?: CallOptions): Promise<RegistryLogin> {
    return this.#call("get", "/v1/registries/{host}", { params: { host }, ...options });
  }

  /** Stores a login for a registry, once the registry has accepted it. */
  logInToRegistry(
    host: string,
    body: { username: string; password: string },
    options?: CallOptions,
  ): Promise<RegistryLogin> {
    return this.#call("put", "/v1/registries/{host}", { params: { host }, body, ...options });
  }

  /** Deletes the login for a registry. */
  async logOutOfRegistry(host: string, options?: CallOptions): Promise<void> {
    await this.#call("delete", "/v1/registries/{host}", { params: { host }, ...options });
  }

  /** Returns what apps used, by app, machine or day. */
  getUsage({ from, to, group_by, app, ...options }: UsageOptions = {}): Promise<UsageReport> {
    return this.#call("get", "/v1/usage", { query: { from, to, group_by, app }, ...options });
  }

  /** Returns what a machine used, by day. A destroyed machine is found by its whole id. */
  getMachineUsage(app: string, id: string, { from, to, ...options }: MachineUsageOptions = {}): Promise<UsageReport> {
    return this.#call("get", `${MACHINE}/usage`, { params: machineParams(app, id), query: { from, to }, ...options });
  }

  /** Returns the API's tokens, without their secrets. */
  async listTokens(options?: CallOptions): Promise<Token[]> {
    return (await this.#call("get", "/v1/tokens", { ...options })).tokens;
  }

  /** Creates a token. Its secret is in the reply, and nowhere else ever after. */
  createToken(name: string, options?: CallOptions): Promise<NewToken> {
    return this.#call("post", "/v1/tokens", { body: { name }, ...options });
  }

  /** Revokes a token. */
  async revokeToken(id: string, options?: CallOptions): Promise<void> {
    await this.#call("delete", "/v1/tokens/{token_id}", { params: { token_id: id }, ...options });
  }

  async *#logs(
    app: string,
    { machine, stream, limit, since, ...options }: LogsOptions = {},
    follow?: "1",
  ): AsyncGenerator<LogEntry, void> {
    const query = { machine: joined(machine), stream: joined(stream), limit, since, follow };
    const lines = this.#lines("get", "/v1/apps/{app_name}/logs", { params: { app_name: app }, query, ...options });
    for await (const line of lines) yield JSON.parse(line) as LogEntry;
  }

  #call<P extends Path, M extends Method>(method: M, path: P, request: RouteRequest<P, M>): Promise<RouteReply<P, M>> {
    return send(this.#options, { ...request, method, path });
  }

  #lines<P extends Path, M extends Method>(method: M, path: P, request: RouteRequest<P, M>): AsyncGenerator<string> {
    return sendForLines(this.#options, { ...request, method, path });
  }
}

const MACHINE = "/v1/apps/{app_name}/machines/{machine_id}";

function machineParams(app: string, id: string) {
  return { app_name: app, machine_id: id };
}

/** Several values of one parameter, as the API takes them. */
function joined(values: string | readonly string[] | undefined): string | undefined {
  return values === undefined ? undefined : [values].flat().join(",");
}
