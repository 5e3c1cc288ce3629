/** The processes in machines: a list of them, and signals to apps. */
import { HibernautError } from "@hibernaut/domain/errors";
import { signalNumber } from "@hibernaut/domain/signals";
import { AppTaskExit, GuestError, TASK_UNKNOWN } from "@hibernaut/guest";
import type { ControllerSet } from "../controller-set.ts";
import { type GuestProcess, processesOf } from "../processes.ts";
import { type AgentAnswer, type AgentTask, askAgent, unfinished } from "./ask-agent.ts";
import type { Commands } from "./commands.ts";

/** How long the agent may take, in milliseconds: an emulated guest that is busy needs seconds to look at a thousand processes. */
const TIMEOUT_MS = 20_000;
/** A task for signals has nothing to say. In bytes. */
const MOST_SAID_BYTES = 1024;
/** A list is cut after this. In bytes: a thousand processes with commands of 2 KiB. */
const MOST_LIST_BYTES = 2 * 1024 * 1024;

/** Every method throws like {@link Commands.run}, and `not_found` when there is no such app or machine. */
export class Processes {
  readonly #commands: Pick<Commands, "run">;
  readonly #controllers: ControllerSet;

  constructor(commands: Pick<Commands, "run">, controllers: ControllerSet) {
    this.#commands = commands;
    this.#controllers = controllers;
  }

  /**
   * Sends a signal such as `SIGUSR1` to the first process of the machine's app, and notes that in the machine's history.
   * Throws `invalid_argument` for a name that is not a signal, `failed_precondition` unless the app runs, `aborted` when the
   * machine ended before it answered, and `deadline_exceeded` after 20 s.
   */
  async signal(app: string, word: string, name: string, abort: AbortSignal): Promise<void> {
    const number = signalNumber(name, "signal");
    const controller = this.#controllers.find(app, word);
    const { id } = controller.record;
    const asked = {
      task: "app-signal" as const,
      args: [String(number)],
      mostBytes: MOST_SAID_BYTES,
      timeoutMs: TIMEOUT_MS,
      whenLate: "The signal may have been sent.",
    } satisfies AgentTask;
    const { exit, why } = await askAgent(this.#commands, app, id, asked, abort);
    requireAnswer(id, "send signals", exit);
    if (exit?.code === AppTaskExit.notRunning)
      throw new HibernautError("failed_precondition", `The app of machine ${id} is not running. Nothing was sent.`, {
        machine_id: id,
      });
    if (exit?.code !== AppTaskExit.done) throw unfinished(why === "" ? "its agent could not send the signal" : why);
    controller.note({ type: "signal_sent", signal: name });
  }

  /**
   * Lists the processes of a machine that runs, without those of its kernel, in the order of their numbers: at most 1000, and
   * no more than 2 MiB of what the agent says of them. Throws `failed_precondition` unless it runs, `aborted` when its agent
   * says what makes no sense, and `deadline_exceeded` after 20 s.
   */
  async list(app: string, word: string, abort: AbortSignal): Promise<GuestProcess[]> {
    const { id } = this.#controllers.find(app, word).record;
    const asked = {
      task: "ps" as const,
      args: [],
      mostBytes: MOST_LIST_BYTES,
      timeoutMs: TIMEOUT_MS,
      whenLate: "Try again.",
    } satisfies AgentTask;
    const { said, cut, exit, why } = await askAgent(this.#commands, app, id, asked, abort);
    requireAnswer(id, "list processes", exit);
    if (exit !== undefined && (exit.code !== 0 || exit.signal !== 0))
      throw unfinished(why === "" ? "its agent could not list them" : why);
    try {
      return processesOf(said, cut);
    } catch (error) {
      throw error instanceof GuestError ? unfinished(error.message) : error;
    }
  }
}

/** Throws unless the agent knows the task. Its machine got it with its guest bundle, and keeps it until it is updated. */
function requireAnswer(id: string, what: string, exit: AgentAnswer["exit"]): void {
  if (exit?.code !== TASK_UNKNOWN) return;
  throw new HibernautError(
    "failed_precondition",
    `Machine ${id} runs an older guest bundle that cannot ${what}. Run \`hibernaut machine update ${id} --yes\`, which cold starts it with an empty writable layer.`,
    { machine_id: id },
  );
}
