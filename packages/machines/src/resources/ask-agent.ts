/** Asks the agent of a machine to do something itself, and reads what it says, which the guest decides: it is bounded. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type CommandExit, type GuestCommand, GuestError, type TaskName } from "@hibernaut/guest";
import type { Commands } from "./commands.ts";

/** An error is a sentence with a path in it. In bytes. */
const MOST_ERROR_BYTES = 16_384;

/** What the agent is asked. */
export interface AgentTask {
  task: TaskName;
  args: string[];
  /** How many bytes of what it says are read; the task is killed when it says more. */
  mostBytes: number;
  /** How long it may take, in milliseconds. */
  timeoutMs: number;
  /** What to do when that was too short, as a sentence. */
  whenLate: string;
}

/** What the agent said. */
export interface AgentAnswer {
  said: Buffer;
  /** There is more. The task was killed then, and `exit` is undefined. */
  cut: boolean;
  exit: CommandExit | undefined;
  /** Why it failed, in the agent's words, or empty. */
  why: string;
}

/**
 * Resolves with what the agent says, whichever way the task ends. Throws like {@link Commands.run}, `aborted` when the guest is
 * gone before the end or the signal ends the wait, and `deadline_exceeded`.
 */
export async function askAgent(
  commands: Pick<Commands, "run">,
  app: string,
  id: string,
  { task, args, mostBytes, timeoutMs, whenLate }: AgentTask,
  signal: AbortSignal,
): Promise<AgentAnswer> {
  const late = AbortSignal.timeout(timeoutMs);
  const over = AbortSignal.any([signal, late]);
  over.throwIfAborted();
  const command = commands.run(app, id, { task, args });
  const end = () => command.kill();
  over.addEventListener("abort", end, { once: true });
  const why = beginningOf(command, "stderr", MOST_ERROR_BYTES);
  const { exit } = command;
  for (const promise of [why, exit]) promise.catch(() => {}); // One that is killed says nothing of use.
  try {
    const said = await beginningOf(command, "stdout", mostBytes);
    if (said.cut) return { ...said, exit: undefined, why: "" };
    const ended = await exit;
    return { ...said, exit: ended, why: ended.failure ?? (await why).said.toString("utf8").trim() };
  } catch (error) {
    if (late.aborted)
      throw new HibernautError(
        "deadline_exceeded",
        `The machine did not finish this within ${timeoutMs / 1000} s. ${whenLate}`,
      );
    if (error instanceof GuestError) throw unfinished(error.message);
    throw error;
  } finally {
    over.removeEventListener("abort", end);
  }
}

/** The machine, or what it said, cannot be made sense of. */
export function unfinished(why: string): HibernautError {
  return new HibernautError("aborted", `The machine did not finish this: ${why}. Try again.`);
}

/** The first bytes of an output. A command that says more is killed: a guest might never end. */
async function beginningOf(
  command: GuestCommand,
  from: "stdout" | "stderr",
  most: number,
): Promise<{ said: Buffer; cut: boolean }> {
  const kept: Buffer[] = [];
  let room = most;
  for await (const chunk of command[from] as AsyncIterable<Buffer>) {
    kept.push(chunk.subarray(0, room));
    room -= chunk.length;
    if (room >= 0) continue;
    command.kill("it says too much");
    break;
  }
  return { said: Buffer.concat(kept), cut: room < 0 };
}
