/** Connections from outside to a port inside a machine. The agent opens them, so they reach the loopback interface too. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineState } from "@hibernaut/domain/machine";
import { HOLD_TIMEOUT_MS } from "@hibernaut/domain/patience";
import type { CommandSpec, GuestCommand } from "@hibernaut/guest";
import type { Commands } from "./commands.ts";
import type { Machines } from "./machines.ts";

/** How many connections one machine has at a time: its agent has room for 32 commands more than that of its local API. */
export const MOST_FORWARDS = 24;

/** States that a request wakes a machine from. The others pass, or are over. */
const ASLEEP: ReadonlySet<MachineState> = new Set(["suspended", "suspending", "stopped", "created"]);

/** Opens connections, and wakes machines for them. */
export class Forwards {
  readonly #machines: Machines;
  readonly #commands: Commands;
  readonly #open = new Map<string, number>();

  constructor(machines: Machines, commands: Commands) {
    this.#machines = machines;
    this.#commands = commands;
  }

  /**
   * Wakes the machine if it sleeps, so that a connection to a port of it is possible. Throws `failed_precondition` if it
   * does not get to run, `deadline_exceeded` if that takes too long, `resource_exhausted` when it has too many
   * connections, and the signal's reason.
   */
  async prepare(app: string, word: string, port: number, signal: AbortSignal): Promise<void> {
    const { id } = this.#machines.get(app, word).record;
    this.#requireRoom(id);
    await this.#awake(app, id, signal);
    this.#commands.require(app, id, connectionTo(port));
  }

  /** Connects to a TCP port of a machine that runs. Throws `failed_precondition` if it does not, and `resource_exhausted`. */
  connect(app: string, word: string, port: number): GuestCommand {
    const { id } = this.#machines.get(app, word).record;
    this.#requireRoom(id);
    const connection = this.#commands.run(app, id, connectionTo(port));
    this.#open.set(id, (this.#open.get(id) ?? 0) + 1);
    void connection.exit.catch(() => {}).finally(() => this.#closed(id));
    return connection;
  }

  #requireRoom(id: string): void {
    const open = this.#open.get(id) ?? 0;
    if (open >= MOST_FORWARDS)
      throw new HibernautError(
        "resource_exhausted",
        `Machine ${id} has ${MOST_FORWARDS} forwarded connections, the most there can be. Close one, then try again.`,
        { machine_id: id, limit: MOST_FORWARDS },
      );
  }

  /** Starts the machine again if it fell asleep while a connection was open and quiet. */
  wake(app: string, id: string): void {
    if (ASLEEP.has(this.#machines.get(app, id).record.state)) this.#machines.start(app, id, { reason: "forward" });
  }

  async #awake(app: string, id: string, signal: AbortSignal): Promise<void> {
    if (this.#machines.get(app, id).record.state === "running") return;
    this.wake(app, id);
    const { state } = await this.#machines.wait(app, id, ["running", "failed"], { timeoutMs: HOLD_TIMEOUT_MS, signal });
    if (state === "running") return;
    throw new HibernautError(
      "failed_precondition",
      `Machine ${id} could not be woken: it is ${state}. \`hibernaut machine status ${id}\` shows why.`,
      { machine_id: id, state },
    );
  }

  #closed(id: string): void {
    const open = (this.#open.get(id) ?? 1) - 1;
    if (open > 0) this.#open.set(id, open);
    else this.#open.delete(id);
  }
}

function connectionTo(port: number): CommandSpec {
  return { task: "connect", args: [String(port)], input: true };
}
