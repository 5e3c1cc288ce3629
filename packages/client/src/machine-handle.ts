/** One machine as a program uses it: run commands, keep files, pause, fork. */
import { ApiError } from "./error.ts";
import type { MachineClient } from "./machine-client.ts";
import { MachineCommands } from "./machine-commands.ts";
import { type Archives, MachineFiles } from "./machine-files.ts";
import type { CallOptions } from "./transport.ts";
import type { ForkRequest, Machine, MachineState } from "./types.ts";

/** How long to wait until a machine has reached a state, in seconds, unless a caller says otherwise. A cold start takes less. */
const WAIT_S = 60;

/** States from which a start brings a machine back, and those that lead there by themselves. */
const WAKEABLE: ReadonlySet<unknown> = new Set<MachineState>([
  ...(["suspended", "suspending", "stopped", "created"] as const),
  ...(["starting", "restarting", "updating"] as const),
]);

/** The client that a handle speaks through. */
export type HandleClient = MachineClient & Archives;

/** How long to wait for a change. */
export interface ReachOptions extends CallOptions {
  /** Seconds. Default: 60. */
  timeout?: number;
}

/**
 * A machine by its app and its id or name. Commands and files wake it if it sleeps. Every method rejects with an `ApiError`.
 *
 * @example
 * const machine = client.machine("agents", id);
 * await machine.files.write("/srv/job.sh", "echo done");
 * const { stdout } = await machine.commands.run("sh /srv/job.sh");
 */
export class MachineHandle {
  readonly app: string;
  readonly id: string;
  readonly commands: MachineCommands;
  readonly files: MachineFiles;
  readonly #client: HandleClient;

  constructor(client: HandleClient, app: string, id: string) {
    this.#client = client;
    this.app = app;
    this.id = id;
    const awake = <T>(work: () => Promise<T>, options: CallOptions) => this.#awake(work, options);
    this.commands = new MachineCommands(client, [app, id], awake);
    this.files = new MachineFiles(client, [app, id], awake);
  }

  /** Returns what the platform knows of it. */
  get(options?: CallOptions): Promise<Machine> {
    return this.#client.getMachine(this.app, this.id, options);
  }

  /** Suspends it to a snapshot, and resolves once it sleeps. */
  async pause(options: ReachOptions = {}): Promise<void> {
    const { timeout: _timeout, ...call } = options;
    await this.#client.suspendMachine(this.app, this.id, call);
    await this.#reach("suspended", options);
  }

  /** Wakes it, and resolves once it runs. */
  async resume(options: ReachOptions = {}): Promise<void> {
    const { timeout: _timeout, ...call } = options;
    await this.#client.startMachine(this.app, this.id, call);
    await this.#reach("running", options);
  }

  /** Makes machines that continue from where it is now, and resolves once they run. It runs on itself. */
  async fork(body: ForkRequest = {}, options: ReachOptions = {}): Promise<MachineHandle[]> {
    const { timeout: _timeout, ...call } = options;
    const born = await this.#client.forkMachine(this.app, this.id, body, call);
    const forks = born.map(({ id }) => new MachineHandle(this.#client, this.app, id));
    if (body.skip_launch !== true) await Promise.all(forks.map((fork) => fork.#reach("running", options)));
    return forks;
  }

  /** Resolves once it runs, for one that was just made. */
  async ready(options: ReachOptions = {}): Promise<void> {
    await this.#reach("running", options);
  }

  /** Destroys it, whatever it does, and resolves once it is gone. */
  async destroy({ timeout = WAIT_S, ...options }: ReachOptions = {}): Promise<void> {
    await this.#client.destroyMachine(this.app, this.id, { ...options, force: true });
    const gone = this.#client.waitForMachine(this.app, this.id, { ...options, state: ["destroyed"], timeout });
    await gone.catch(unlessMissing);
  }

  async #awake<T>(work: () => Promise<T>, options: CallOptions): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "failed_precondition") throw error;
      if (!WAKEABLE.has(error.details["state"])) throw error;
    }
    await this.resume(options);
    return work();
  }

  async #reach(wanted: "running" | "suspended", { timeout = WAIT_S, ...options }: ReachOptions): Promise<void> {
    const state = [wanted, "failed", "stopped"] as const;
    const reached = await this.#client.waitForMachine(this.app, this.id, { ...options, state: [...state], timeout });
    if (reached === wanted) return;
    const { state_reason: why } = await this.get(options);
    const because = why === null ? "" : `, because ${why.replace(/\.$/, "")}`;
    const message = `Machine ${this.id} is ${reached} in place of ${wanted}${because}. See its logs, and start it again.`;
    throw new ApiError({ code: "failed_precondition", message, details: { machine_id: this.id } });
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.code === "not_found")) throw error;
}
