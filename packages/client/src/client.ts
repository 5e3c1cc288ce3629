/** The HTTP API as methods. */
import type { ExecOptions, ExecSession } from "./exec.ts";
import { readPull } from "./pull.ts";
import { type Call, type CallOptions, type ClientOptions, send, sendForLines } from "./transport.ts";
import type {
  App,
  CreateMachine,
  CreateVolume,
  Exec,
  ExecResult,
  Health,
  LogEntry,
  LogStream,
  Machine,
  MachineConfig,
  MachineEvent,
  MachineState,
  NewToken,
  PulledImage,
  PullProgress,
  Region,
  RegistryLogin,
  Secret,
  SecretsEffect,
  Release,
  StoredImage,
  Token,
  Volume,
  VolumeSnapshot,
  WaitState,
} from "./types.ts";

/** Whether to destroy what still runs. */
export interface DestroyOptions extends CallOptions {
  force?: boolean;
}

/** Whether only to say what would happen. */
export interface DryRunOptions extends CallOptions {
  dryRun?: boolean;
}

/** Who wants to hear how far a pull is. */
export interface PullOptions extends CallOptions {
  onProgress?(progress: PullProgress): void;
}

/** What to wait for, and for how long. */
export interface WaitOptions extends CallOptions {
  /** Any of these; `running` when absent. */
  states?: WaitState[];
  /** 1 to 300; 60 when absent. */
  timeoutS?: number;
}

/** Which lines of logs. */
export interface LogsOptions extends CallOptions {
  /** Ids; all machines of the app when absent, also those made while one follows. */
  machine?: string | readonly string[];
  streams?: readonly LogStream[];
  /** The last so many; 100 when absent, 10000 with `since`. */
  limit?: number;
  /** A time (RFC 3339), or how long ago: `30s`, `10m`, `2h`, `1d`. */
  since?: string;
  /** Goes on with what comes, until the machine is destroyed. */
  follow?: boolean;
}

/**
 * A platform. Every method rejects with an `ApiError`, or with the signal's reason when aborted.
 *
 * @example
 * const client = new HibernautClient({ apiUrl: "http://127.0.0.1:4280", token });
 * const machine = await client.createMachine("shop", { config: { image: "oci:/srv/shop" } });
 * await client.waitMachine("shop", machine.id);
 */
export class HibernautClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The address that was given. */
  get apiUrl(): string {
    return this.#options.apiUrl;
  }

  health(options?: CallOptions): Promise<Health> {
    return this.#send({ ...options, method: "GET", path: ["v1", "health"] });
  }

  async listRegions(options?: CallOptions): Promise<Region[]> {
    return (await this.#send<{ regions: Region[] }>({ ...options, method: "GET", path: ["v1", "platform", "regions"] }))
      .regions;
  }

  async listApps(options?: CallOptions): Promise<App[]> {
    return (await this.#send<{ apps: App[] }>({ ...options, method: "GET", path: ["v1", "apps"] })).apps;
  }

  createApp(name: string, options?: CallOptions): Promise<App> {
    return this.#send({ ...options, method: "POST", path: ["v1", "apps"], body: { app_name: name } });
  }

  getApp(name: string, options?: CallOptions): Promise<App> {
    return this.#send({ ...options, method: "GET", path: ["v1", "apps", name] });
  }

  /** With `force` its machines are destroyed too. */
  async deleteApp(name: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    await this.#send({
      ...options,
      method: "DELETE",
      path: ["v1", "apps", name],
      query: { force: force ? "true" : undefined },
    });
  }

  /** Newest first; 25 when `limit` is absent. */
  async listReleases(app: string, { limit, ...options }: CallOptions & { limit?: number } = {}): Promise<Release[]> {
    const query = { limit: limit?.toString() };
    const path = ["v1", "apps", app, "releases"];
    return (await this.#send<{ releases: Release[] }>({ ...options, method: "GET", path, query })).releases;
  }

  /** Brings the image to the platform and writes down that it is being deployed. */
  beginRelease(app: string, body: { image: string; description?: string }, options?: CallOptions): Promise<Release> {
    return this.#send({ ...options, method: "POST", path: ["v1", "apps", app, "releases"], body });
  }

  endRelease(
    app: string,
    version: number,
    body: { status: "complete" | "failed"; description?: string },
    options?: CallOptions,
  ): Promise<Release> {
    return this.#send({ ...options, method: "POST", path: ["v1", "apps", app, "releases", String(version)], body });
  }

  /** Oldest first. */
  listVolumes(app: string, options?: CallOptions): Promise<Volume[]> {
    return this.#send({ ...options, method: "GET", path: volumes(app) });
  }

  getVolume(app: string, id: string, options?: CallOptions): Promise<Volume> {
    return this.#send({ ...options, method: "GET", path: volumes(app, id) });
  }

  createVolume(app: string, volume: CreateVolume, options?: CallOptions): Promise<Volume> {
    return this.#send({ ...options, method: "POST", path: volumes(app), body: volume });
  }

  /** Its machine has the new size from its next cold start on; `needsRestart` says that one has to come first. */
  async extendVolume(
    app: string,
    id: string,
    sizeGb: number,
    options?: CallOptions,
  ): Promise<{ volume: Volume; needsRestart: boolean }> {
    const call: Call = { ...options, method: "PUT", path: volumes(app, id, "extend"), body: { size_gb: sizeGb } };
    const { volume, needs_restart } = await this.#send<{ volume: Volume; needs_restart: boolean }>(call);
    return { volume, needsRestart: needs_restart };
  }

  /** With its snapshots. A volume that a machine has is refused. */
  async destroyVolume(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "DELETE", path: volumes(app, id) });
  }

  /** Newest first. */
  listVolumeSnapshots(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot[]> {
    return this.#send({ ...options, method: "GET", path: volumes(app, id, "snapshots") });
  }

  /** Resolves when the copy is whole. */
  createVolumeSnapshot(app: string, id: string, options?: CallOptions): Promise<VolumeSnapshot> {
    return this.#send({ ...options, method: "POST", path: volumes(app, id, "snapshots") });
  }

  async destroyVolumeSnapshot(app: string, id: string, snapshotId: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "DELETE", path: volumes(app, id, "snapshots", snapshotId) });
  }

  /** Names of their own under which an app answers. */
  async listHostnames(app: string, options?: CallOptions): Promise<string[]> {
    const path = ["v1", "apps", app, "hostnames"];
    return (await this.#send<{ hostnames: string[] }>({ ...options, method: "GET", path })).hostnames;
  }

  /** The name as it is kept. */
  async addHostname(app: string, hostname: string, options?: CallOptions): Promise<string> {
    const path = ["v1", "apps", app, "hostnames"];
    return (await this.#send<{ hostname: string }>({ ...options, method: "POST", path, body: { hostname } })).hostname;
  }

  async removeHostname(app: string, hostname: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "DELETE", path: ["v1", "apps", app, "hostnames", hostname] });
  }

  async listSecrets(app: string, options?: CallOptions): Promise<Secret[]> {
    const path = ["v1", "apps", app, "secrets"];
    return (await this.#send<{ secrets: Secret[] }>({ ...options, method: "GET", path })).secrets;
  }

  /** Sets all of them or none. The snapshots of the app's machines are discarded. */
  setSecrets(
    app: string,
    secrets: Record<string, string>,
    { dryRun, ...options }: DryRunOptions = {},
  ): Promise<SecretsEffect> {
    const path = ["v1", "apps", app, "secrets"];
    return this.#send({ ...options, method: "POST", path, query: dryRunQuery(dryRun), body: { secrets } });
  }

  unsetSecret(app: string, name: string, { dryRun, ...options }: DryRunOptions = {}): Promise<SecretsEffect> {
    const path = ["v1", "apps", app, "secrets", name];
    return this.#send({ ...options, method: "DELETE", path, query: dryRunQuery(dryRun) });
  }

  /** Of all apps. */
  listAllMachines(options?: CallOptions): Promise<Machine[]> {
    return this.#send({ ...options, method: "GET", path: ["v1", "machines"] });
  }

  listMachines(app: string, options?: CallOptions): Promise<Machine[]> {
    return this.#send({ ...options, method: "GET", path: machines(app) });
  }

  createMachine(app: string, machine: CreateMachine, options?: CallOptions): Promise<Machine> {
    return this.#send({ ...options, method: "POST", path: machines(app), body: machine });
  }

  getMachine(app: string, id: string, options?: CallOptions): Promise<Machine> {
    return this.#send({ ...options, method: "GET", path: machines(app, id) });
  }

  /** A full new configuration; without one the machine moves to the current guest bundle and nothing else changes. */
  updateMachine(app: string, id: string, config?: MachineConfig, options?: CallOptions): Promise<Machine> {
    return this.#send({ ...options, method: "POST", path: machines(app, id), body: config ? { config } : {} });
  }

  /** A running machine is destroyed with `force` only. */
  async destroyMachine(app: string, id: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    await this.#send({
      ...options,
      method: "DELETE",
      path: machines(app, id),
      query: { force: force ? "true" : undefined },
    });
  }

  /** Actions are accepted at once and carried out after: `waitMachine` observes them. */
  async startMachine(app: string, id: string, options?: CallOptions): Promise<{ previousState: MachineState }> {
    const reply = await this.#send<{ previous_state: MachineState }>({
      ...options,
      method: "POST",
      path: machines(app, id, "start"),
    });
    return { previousState: reply.previous_state };
  }

  async suspendMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "POST", path: machines(app, id, "suspend") });
  }

  async stopMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "POST", path: machines(app, id, "stop") });
  }

  async restartMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "POST", path: machines(app, id, "restart") });
  }

  /** The state that was reached; rejects with `deadline_exceeded` when none was in time. */
  async waitMachine(
    app: string,
    id: string,
    { states, timeoutS, ...options }: WaitOptions = {},
  ): Promise<MachineState> {
    const query = { state: states?.join(","), timeout: timeoutS?.toString() };
    return (
      await this.#send<{ state: MachineState }>({ ...options, method: "GET", path: machines(app, id, "wait"), query })
    ).state;
  }

  /** Newest first; 100 when `limit` is absent. */
  machineEvents(
    app: string,
    id: string,
    { limit, ...options }: CallOptions & { limit?: number } = {},
  ): Promise<MachineEvent[]> {
    return this.#send({
      ...options,
      method: "GET",
      path: machines(app, id, "events"),
      query: { limit: limit?.toString() },
    });
  }

  /**
   * The lines of an app's logs, oldest first, as they come.
   *
   * @example
   * for await (const { at, text } of client.logs("shop", { follow: true, signal })) console.log(at, text);
   */
  async *logs(
    app: string,
    { machine, streams, limit, since, follow, signal }: LogsOptions = {},
  ): AsyncGenerator<LogEntry, void> {
    const query = {
      machine: machine === undefined ? undefined : [machine].flat().join(","),
      stream: streams?.join(","),
      limit: limit?.toString(),
      since,
      follow: follow === true ? "1" : undefined,
    };
    const call: Call = { method: "GET", path: ["v1", "apps", app, "logs"], query, ...(signal && { signal }) };
    for await (const line of sendForLines(this.#options, call)) yield JSON.parse(line) as LogEntry;
  }

  /** Runs a command and answers when it ended. */
  exec(app: string, id: string, exec: Exec, options?: CallOptions): Promise<ExecResult> {
    return this.#send({ ...options, method: "POST", path: machines(app, id, "exec"), body: exec });
  }

  /** Runs a command whose input and outputs are streamed. */
  async openExec(app: string, id: string, exec: ExecOptions): Promise<ExecSession> {
    const { openExec } = await import("./exec.ts");
    return openExec(this.#options, machines(app, id, "exec"), exec);
  }

  /** Has the image ready on the platform; resolves when it is. What is downloaded is kept if this is given up. */
  pullImage(ref: string, { onProgress, ...options }: PullOptions = {}): Promise<PulledImage> {
    const call: Call = { ...options, method: "POST", path: ["v1", "images", "pull"], body: { ref } };
    return readPull(sendForLines(this.#options, call), onProgress);
  }

  async listImages(options?: CallOptions): Promise<StoredImage[]> {
    return (await this.#send<{ images: StoredImage[] }>({ ...options, method: "GET", path: ["v1", "images"] })).images;
  }

  /** Deletes the images that no machine needs, and the downloaded layers. */
  async pruneImages(options?: CallOptions): Promise<{ deleted: string[]; freedBytes: number }> {
    const call: Call = { ...options, method: "DELETE", path: ["v1", "images"], query: { unused: "true" } };
    const { deleted, freed_bytes } = await this.#send<{ deleted: string[]; freed_bytes: number }>(call);
    return { deleted, freedBytes: freed_bytes };
  }

  async listRegistries(options?: CallOptions): Promise<RegistryLogin[]> {
    const path = ["v1", "registries"];
    return (await this.#send<{ registries: RegistryLogin[] }>({ ...options, method: "GET", path })).registries;
  }

  getRegistry(host: string, options?: CallOptions): Promise<RegistryLogin> {
    return this.#send({ ...options, method: "GET", path: ["v1", "registries", host] });
  }

  /** Stores a login, once the registry has taken it. */
  loginRegistry(
    host: string,
    login: { username: string; password: string },
    options?: CallOptions,
  ): Promise<RegistryLogin> {
    return this.#send({ ...options, method: "PUT", path: ["v1", "registries", host], body: login });
  }

  async logoutRegistry(host: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "DELETE", path: ["v1", "registries", host] });
  }

  async listTokens(options?: CallOptions): Promise<Token[]> {
    return (await this.#send<{ tokens: Token[] }>({ ...options, method: "GET", path: ["v1", "tokens"] })).tokens;
  }

  createToken(name: string, options?: CallOptions): Promise<NewToken> {
    return this.#send({ ...options, method: "POST", path: ["v1", "tokens"], body: { name } });
  }

  async revokeToken(id: string, options?: CallOptions): Promise<void> {
    await this.#send({ ...options, method: "DELETE", path: ["v1", "tokens", id] });
  }

  #send<T>(call: Call): Promise<T> {
    return send<T>(this.#options, call);
  }
}

function dryRunQuery(dryRun = false): Record<string, string | undefined> {
  return { dry_run: dryRun ? "true" : undefined };
}

function volumes(app: string, ...rest: string[]): string[] {
  return ["v1", "apps", app, "volumes", ...rest];
}

function machines(app: string, ...rest: string[]): string[] {
  return ["v1", "apps", app, "machines", ...rest];
}
