/** A sandbox as its files and processes are reached: programs and tasks of its machine's agent. */
import type { Readable } from "node:stream";
import type { CommandSpec, GuestCommand, TaskName } from "@hibernaut/guest";
import { Refusal } from "../failure.ts";
import { MOST_ERROR_CHARACTERS, MOST_SAID_BYTES } from "./limits.ts";

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

/** The user whom clients mean who name none. Images that have no such user run everything as their own. */
const DEFAULT_USER = "user";

export interface GuestTask {
  command: GuestCommand;
  /** Rejects with a {@link Refusal} unless the task succeeded. Look at it once all its output is read. */
  ended: Promise<void>;
}

export class SandboxGuest {
  readonly #run: (spec: CommandSpec) => GuestCommand;
  #defaultUser: Promise<string | undefined> | undefined;

  constructor(run: (spec: CommandSpec) => GuestCommand) {
    this.#run = run;
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

  /** Begins a task. Read its output, or it comes to a halt. */
  begin(
    task: TaskName,
    args: string[],
    { user, input = false }: { user: string | undefined; input?: boolean },
  ): GuestTask {
    const command = this.#run({ task, args, input, ...(user !== undefined && { user }) });
    const ended = succeeded(command);
    ended.catch(() => {}); // The caller looks at it when all output is read.
    return { command, ended };
  }

  /** Carries out a task, and returns all it said. */
  async ask(task: TaskName, args: string[], user: string | undefined): Promise<Buffer> {
    const { command, ended } = this.begin(task, args, { user });
    const [said] = await Promise.all([all(command.stdout), ended]);
    return said;
  }

  async #usual(): Promise<string | undefined> {
    const { command, ended } = this.begin("fs-stat", ["/"], { user: DEFAULT_USER });
    command.stdout.resume();
    try {
      await ended;
      return DEFAULT_USER;
    } catch (error) {
      if (error instanceof Refusal && error.status === STATUS[EXIT.noUser]) return undefined;
      throw error;
    }
  }
}

async function succeeded(command: GuestCommand): Promise<void> {
  const said = all(command.stderr);
  const exit = await command.exit;
  if (exit.code === EXIT.done && exit.signal === 0) return;
  const why =
    exit.failure ?? ((await said).toString("utf8").trim().slice(0, MOST_ERROR_CHARACTERS) || "the task ended early");
  // An agent that cannot find the user says so before the task begins.
  const status = exit.failure !== undefined && /user/i.test(why) ? 401 : (STATUS[exit.code] ?? 500);
  throw new Refusal(status, why);
}

async function all(output: Readable): Promise<Buffer> {
  const kept: Buffer[] = [];
  let room = MOST_SAID_BYTES;
  for await (const chunk of output as AsyncIterable<Buffer>) {
    room -= chunk.length;
    if (room < 0) throw new Refusal(500, "The answer of the machine is too long.");
    kept.push(chunk);
  }
  return Buffer.concat(kept);
}
