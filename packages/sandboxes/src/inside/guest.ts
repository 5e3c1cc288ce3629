/** A sandbox as its files and processes are reached: programs and tasks of its machine's agent. */
import type { Readable } from "node:stream";
import { type CommandSpec, type GuestCommand, GuestError, type TaskName } from "@hibernaut/guest";
import { Refusal } from "../failure.ts";
import { MOST_ERROR_BYTES, MOST_LIST_BYTES, MOST_SAID_BYTES, MOST_TASKS } from "./limits.ts";

/** How a task ended: `packages/guest/agent/fs.h`. */
const EXIT = {
  done: 0,
  notFound: 2,
  refused: 3,
  exists: 4,
  notDirectory: 5,
  isDirectory: 6,
  full: 7,
  noUser: 8,
} as const;

/** The HTTP status of each end but success. */
const STATUS: Record<number, number> = {
  [EXIT.notFound]: 404,
  [EXIT.refused]: 400,
  [EXIT.exists]: 409,
  [EXIT.notDirectory]: 400,
  [EXIT.isDirectory]: 400,
  [EXIT.full]: 507,
  [EXIT.noUser]: 401,
};

/** The user whom clients mean who name none, unless their template says another. Images that have no such user run everything as their own. */
export const DEFAULT_USER = "user";

export interface GuestTask {
  command: GuestCommand;
  /** Rejects with a {@link Refusal} unless the task succeeded. Look at it once all its output is read. */
  ended: Promise<void>;
}

/** For whom a task is carried out. */
interface TaskOptions {
  user: string | undefined;
  input?: boolean;
  /** Ends the task. */
  signal: AbortSignal;
}

export class SandboxGuest {
  readonly #run: (spec: CommandSpec) => GuestCommand;
  #defaultUser: Promise<string | undefined> | undefined;
  #tasks = 0;
  readonly #wanted: string;

  /** `user`: whom clients mean who name none. */
  constructor(run: (spec: CommandSpec) => GuestCommand, user = DEFAULT_USER) {
    this.#run = run;
    this.#wanted = user;
  }

  /** Runs a program as that user logs in. Throws what {@link Commands.run} throws. */
  start(spec: CommandSpec): GuestCommand {
    return this.#run({ ...spec, login: true });
  }

  /** The user to act as: the one that the client names, or the sandbox's usual one. Undefined for that of the image. */
  async user(named: string | undefined): Promise<string | undefined> {
    if (named !== undefined && named !== "") return named;
    this.#defaultUser ??= this.#usual().catch((error: unknown) => {
      this.#defaultUser = undefined;
      throw error;
    });
    return this.#defaultUser;
  }

  /** Begins a task. Read its output, or it comes to a halt. Throws a {@link Refusal} when there are too many. */
  begin(task: TaskName, args: string[], { user, input = false, signal }: TaskOptions): GuestTask {
    return this.#begin({ task, args, input, ...(user !== undefined && { user }) }, signal);
  }

  #begin(spec: CommandSpec, signal: AbortSignal): GuestTask {
    signal.throwIfAborted();
    if (this.#tasks >= MOST_TASKS)
      throw new Refusal(429, `The sandbox is busy with ${MOST_TASKS} operations on files. Wait for one to end.`);
    const command = this.#run(spec);
    this.#tasks += 1;
    const end = () => command.kill();
    signal.addEventListener("abort", end, { once: true });
    const ended = succeeded(command).finally(() => {
      this.#tasks -= 1;
      signal.removeEventListener("abort", end);
    });
    ended.catch(() => {}); // The caller looks at it when all output is read.
    return { command, ended };
  }

  /** Carries out a task, and returns all it said. */
  async ask(task: TaskName, args: string[], options: TaskOptions): Promise<Buffer> {
    const { command, ended } = this.begin(task, args, options);
    const said = await saidBy(command, task === "fs-list" ? MOST_LIST_BYTES : MOST_SAID_BYTES);
    await ended;
    return said;
  }

  /** Runs a script of the shell as root, which ends as tasks do, and returns all it said. */
  async tell(script: string, args: string[], { most, signal }: { most: number; signal: AbortSignal }): Promise<Buffer> {
    const shell = ["/bin/sh", "-c", script, "sh", ...args];
    const { command, ended } = this.#begin({ args: shell, user: "root", workdir: "/", timeoutMs: SCRIPT_MS }, signal);
    const said = await saidBy(command, most);
    await ended;
    return said;
  }

  async #usual(): Promise<string | undefined> {
    const signal = AbortSignal.timeout(USUAL_TIMEOUT_MS);
    const { command, ended } = this.begin("fs-stat", ["/"], { user: this.#wanted, signal });
    command.stdout.resume();
    try {
      await ended;
      return this.#wanted;
    } catch (error) {
      if (error instanceof Refusal && error.status === STATUS[EXIT.noUser]) return undefined;
      throw error;
    }
  }
}

/** How long a script may take, in milliseconds: as long as clients wait. */
const SCRIPT_MS = 60_000;

/** How long a guest has to say whether it has the usual user, in milliseconds: as long as clients wait. */
const USUAL_TIMEOUT_MS = 60_000;

/** Returns what a command says, and kills one that says more. Rejects with a {@link Refusal} then. */
export async function saidBy(command: GuestCommand, most: number): Promise<Buffer> {
  const kept: Buffer[] = [];
  let room = most;
  for await (const chunk of command.stdout as AsyncIterable<Buffer>) {
    room -= chunk.length;
    if (room < 0) {
      command.kill("the answer is too long");
      throw new Refusal(502, "The answer of the machine is too long.");
    }
    kept.push(chunk);
  }
  return Buffer.concat(kept);
}

async function succeeded(command: GuestCommand): Promise<void> {
  const said = beginningOf(command.stderr);
  let exit: Awaited<GuestCommand["exit"]>;
  try {
    exit = await command.exit;
  } catch (error) {
    if (error instanceof GuestError) throw new Refusal(502, `The sandbox did not finish this: ${error.message}.`);
    throw error;
  }
  if (exit.code === EXIT.done && exit.signal === 0) return;
  const why = exit.failure ?? ((await said).toString("utf8").trim() || "the task ended early");
  // An agent that cannot find the user says so before the task begins.
  const status = exit.failure !== undefined && /user/i.test(why) ? 401 : (STATUS[exit.code] ?? 502);
  throw new Refusal(status, why);
}

/** The beginning of what an error says; the rest is read, and not kept. Never rejects. */
export function beginningOf(output: Readable): Promise<Buffer> {
  const kept: Buffer[] = [];
  let room = MOST_ERROR_BYTES;
  output.on("data", (chunk: Buffer) => {
    if (room > 0) kept.push(chunk.subarray(0, room));
    room -= chunk.length;
  });
  return new Promise((resolve) => {
    output.once("close", () => resolve(Buffer.concat(kept))).once("end", () => resolve(Buffer.concat(kept)));
  });
}
