/** Methods about machines. */
import { LeaseClient } from "./lease-client.ts";
import { MACHINE, machineParams } from "./machine-path.ts";
import type {
  DestroyOptions,
  LimitOptions,
  ListMachinesOptions,
  LogsOptions,
  MachineUsageOptions,
  MoveOptions,
  ProcessOptions,
  StartOptions,
  StopOptions,
  UpdateOptions,
  WaitOptions,
} from "./options.ts";
import { readMove } from "./progress.ts";
import type { CallOptions } from "./transport.ts";
import type {
  Activity,
  CreateMachineRequest,
  EgressConfig,
  ExecRequest,
  ExecResult,
  FileEntry,
  FileList,
  ForkRequest,
  GuestProcess,
  LogEntry,
  Machine,
  MachineConfig,
  MachineEvent,
  MachinePath,
  MachineState,
  RestoreRequest,
  UsageReport,
  WaitState,
} from "./types.ts";

/** The part of the client about machines. What Node alone can do is in `client.ts`. */
export abstract class MachineClient extends LeaseClient {
  /** Returns the machines of all apps, or those of them that are asked for. */
  listAllMachines({ state, region, metadata, ...options }: ListMachinesOptions = {}): Promise<Machine[]> {
    return this.call("get", "/v1/machines", { query: filterQuery({ state, region, metadata }), ...options });
  }

  /** Returns an app's machines, or those of them that are asked for. */
  listMachines(app: string, { state, region, metadata, ...options }: ListMachinesOptions = {}): Promise<Machine[]> {
    const query = filterQuery({ state, region, metadata });
    return this.call("get", "/v1/apps/{app_name}/machines", { params: { app_name: app }, query, ...options });
  }

  /** Creates a machine and starts it, unless `skip_launch` is set. Resolves before it is running. */
  createMachine(app: string, body: CreateMachineRequest, options?: CallOptions): Promise<Machine> {
    return this.call("post", "/v1/apps/{app_name}/machines", { params: { app_name: app }, body, ...options });
  }

  /** Returns a machine. */
  getMachine(app: string, id: string, options?: CallOptions): Promise<Machine> {
    return this.call("get", MACHINE, { params: machineParams(app, id), ...options });
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
    return this.call("post", MACHINE, { params: machineParams(app, id), body: { config, prewarm }, ...options });
  }

  /** Destroys a machine. A running one needs `force`. */
  async destroyMachine(app: string, id: string, { force, ...options }: DestroyOptions = {}): Promise<void> {
    await this.call("delete", MACHINE, { params: machineParams(app, id), query: { force }, ...options });
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
    return this.call("post", `${MACHINE}/start`, { params: machineParams(app, id), body: { reason }, ...options });
  }

  /** Suspends a machine to a snapshot. */
  async suspendMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.call("post", `${MACHINE}/suspend`, { params: machineParams(app, id), ...options });
  }

  /** Lets a machine continue where a template stopped. The memory and the disk that it had are gone. */
  restoreMachine(app: string, id: string, body: RestoreRequest, options?: CallOptions): Promise<Machine> {
    const params = { app_name: app, machine_id: id };
    return this.call("post", "/v1/apps/{app_name}/machines/{machine_id}/restore", { params, body, ...options });
  }

  /** Makes machines that continue from where a running or suspended one is. Resolves with them once they are stored. */
  forkMachine(app: string, id: string, body: ForkRequest = {}, options?: CallOptions): Promise<Machine[]> {
    return this.call("post", `${MACHINE}/fork`, { params: machineParams(app, id), body, ...options });
  }

  /** Stops a machine and discards its snapshot. While a stop is under way, one with options of its own takes its place. */
  async stopMachine(
    app: string,
    id: string,
    { stopSignal: signal, timeout, ...options }: StopOptions = {},
  ): Promise<void> {
    const body = { signal, timeout };
    await this.call("post", `${MACHINE}/stop`, { params: machineParams(app, id), body, ...options });
  }

  /** Stops a machine, as {@link stopMachine} does, and starts it cold. */
  async restartMachine(
    app: string,
    id: string,
    { stopSignal: signal, timeout, ...options }: StopOptions = {},
  ): Promise<void> {
    const body = { signal, timeout };
    await this.call("post", `${MACHINE}/restart`, { params: machineParams(app, id), body, ...options });
  }

  /**
   * Sends a signal such as `SIGUSR1` to the app of a running machine. Rejects with `failed_precondition` unless the app runs,
   * and when the machine's guest bundle is too old for that.
   */
  async signalMachine(app: string, id: string, signal: string, options?: CallOptions): Promise<void> {
    await this.call("post", `${MACHINE}/signal`, { params: machineParams(app, id), body: { signal }, ...options });
  }

  /**
   * Lists the processes of a running machine, by default in the order of their numbers. Rejects with `failed_precondition`
   * unless it runs, and when its guest bundle is too old for that.
   */
  listProcesses(app: string, id: string, { sort_by, order, ...options }: ProcessOptions = {}): Promise<GuestProcess[]> {
    return this.call("get", `${MACHINE}/ps`, { params: machineParams(app, id), query: { sort_by, order }, ...options });
  }

  /** Takes a machine out of the proxy's hands: it gets no requests, is not woken, and is not put to sleep. */
  async cordonMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.call("post", `${MACHINE}/cordon`, { params: machineParams(app, id), ...options });
  }

  /**
   * Moves a machine to another host of the cluster, and resolves with that host. Rejects with `failed_precondition` when the
   * machine cannot go there with its memory, or has volumes and is moved without them. An aborted move leaves the machine where it is.
   */
  moveMachine(
    app: string,
    id: string,
    { host, cold, withVolumes, onProgress, ...options }: MoveOptions = {},
  ): Promise<{ host: string }> {
    const body = { host, cold, with_volumes: withVolumes };
    const lines = this.lines("post", `${MACHINE}/move`, { params: machineParams(app, id), body, ...options });
    return readMove(lines, onProgress);
  }

  /** Gives a cordoned machine requests again. */
  async uncordonMachine(app: string, id: string, options?: CallOptions): Promise<void> {
    await this.call("post", `${MACHINE}/uncordon`, { params: machineParams(app, id), ...options });
  }

  /**
   * Changes where a machine may connect to, at once, awake or asleep; null: wherever the network lets machines. Rejects with
   * `invalid_argument`, and with `failed_precondition` where the machines' network cannot keep rules.
   */
  async setEgress(app: string, id: string, egress: EgressConfig | null, options?: CallOptions): Promise<void> {
    const params = machineParams(app, id);
    if (egress === null) await this.call("delete", `${MACHINE}/egress`, { params, ...options });
    else await this.call("put", `${MACHINE}/egress`, { params, body: egress, ...options });
  }

  /** Waits for a state and returns the one that was reached. Rejects with `deadline_exceeded` after the timeout. */
  async waitForMachine(app: string, id: string, options?: WaitOptions): Promise<MachineState> {
    return (await this.#wait(app, id, options)).state;
  }

  /**
   * Waits as {@link waitForMachine} does, and returns which of the states it was: `healthy` or `unhealthy`, say, where the
   * machine is running either way, and may have left that state again.
   */
  async firstReached(app: string, id: string, options?: WaitOptions): Promise<WaitState> {
    return (await this.#wait(app, id, options)).reached;
  }

  #wait(app: string, id: string, { state, timeout, ...options }: WaitOptions = {}) {
    const query = { state: joined(state), timeout };
    return this.call("get", `${MACHINE}/wait`, { params: machineParams(app, id), query, ...options });
  }

  /** Returns a machine's history, newest first. Default limit: 100. */
  listMachineEvents(app: string, id: string, { limit, ...options }: LimitOptions = {}): Promise<MachineEvent[]> {
    return this.call("get", `${MACHINE}/events`, { params: machineParams(app, id), query: { limit }, ...options });
  }

  /** Returns what a machine is used for at the moment, and why it does not sleep. */
  getMachineActivity(app: string, id: string, options?: CallOptions): Promise<Activity> {
    return this.call("get", `${MACHINE}/activity`, { params: machineParams(app, id), ...options });
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
    return this.call("post", `${MACHINE}/exec`, { params: machineParams(app, id), body, ...options });
  }

  /** Returns what is at an absolute path in a running machine. Rejects with `not_found` if nothing is. */
  getMachinePath(app: string, id: string, path: string, options?: CallOptions): Promise<MachinePath> {
    return this.call("get", `${MACHINE}/archive/stat`, {
      params: machineParams(app, id),
      query: { path },
      ...options,
    });
  }

  /** Lists what is below a directory of a running machine, down to `depth` levels (default: 1). Long lists are cut, and say so. */
  listMachineFiles(
    app: string,
    id: string,
    path: string,
    { depth, ...options }: CallOptions & { depth?: number | undefined } = {},
  ): Promise<FileList> {
    return this.call("get", `${MACHINE}/files`, { params: machineParams(app, id), query: { path, depth }, ...options });
  }

  /** Makes a directory of a running machine, and those that lead to it. Rejects with `already_exists` if it is there. */
  makeMachineDirectory(app: string, id: string, path: string, options?: CallOptions): Promise<FileEntry> {
    return this.call("put", `${MACHINE}/files/directory`, {
      params: machineParams(app, id),
      query: { path },
      ...options,
    });
  }

  /** Removes a file of a running machine, or a directory with all that is below. Links are not followed. */
  async removeMachineFile(app: string, id: string, path: string, options?: CallOptions): Promise<void> {
    await this.call("delete", `${MACHINE}/files`, { params: machineParams(app, id), query: { path }, ...options });
  }

  /** Returns what a machine used, by day. A destroyed machine is found by its whole id. */
  getMachineUsage(app: string, id: string, { from, to, ...options }: MachineUsageOptions = {}): Promise<UsageReport> {
    return this.call("get", `${MACHINE}/usage`, { params: machineParams(app, id), query: { from, to }, ...options });
  }

  async *#logs(
    app: string,
    { machine, stream, limit, since, ...options }: LogsOptions = {},
    follow?: "1",
  ): AsyncGenerator<LogEntry, void> {
    const query = { machine: joined(machine), stream: joined(stream), limit, since, follow };
    const lines = this.lines("get", "/v1/apps/{app_name}/logs", { params: { app_name: app }, query, ...options });
    for await (const line of lines) yield JSON.parse(line) as LogEntry;
  }
}

/** Keys of metadata are parts of names here, which no type tells. */
function filterQuery({ state, region, metadata = {} }: Pick<ListMachinesOptions, "state" | "region" | "metadata">) {
  const named = Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value]);
  return { ...Object.fromEntries(named), state: joined(state), region } as { state?: string; region?: string };
}

/** Several values of one parameter, as the API takes them. */
function joined(values: string | readonly string[] | undefined): string | undefined {
  return values === undefined ? undefined : [values].flat().join(",");
}
