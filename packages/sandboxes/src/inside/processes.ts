/** The programs of all sandboxes that clients started, by the number that each has in its machine. */
import type { GuestCommand } from "@hibernaut/guest";
import { Refusal } from "../failure.ts";
import type { SandboxGuest } from "./guest.ts";
import { MOST_LABEL_BYTES } from "./limits.ts";
import { Process, type ProcessLabel } from "./process.ts";

/** What starts a program. */
interface StartProcess extends ProcessLabel {
  user: string | undefined;
  size?: { rows: number; columns: number };
  /** Of the sandbox, below those of the client. */
  env: Record<string, string>;
  /** The program is killed after this many milliseconds of the machine's own time. 0: never. */
  timeoutMs: number;
}

/** What a program is meant by. */
export type ProcessWord = { pid: number } | { tag: string };

export class Processes {
  readonly #machines = new Map<string, Map<number, Process>>();

  /** Resolves when the program has been executed. Rejects with 400 when it cannot be. */
  async start(
    id: string,
    guest: SandboxGuest,
    { user, size, env, timeoutMs, ...label }: StartProcess,
  ): Promise<Process> {
    const command = guest.start({
      args: [label.cmd, ...label.args],
      env: { ...(label.terminal && { TERM: "xterm-256color" }), ...env, ...label.envs },
      input: label.stdin || label.terminal,
      timeoutMs,
      label: shortLabel(label),
      ...(user !== undefined && { user }),
      ...(label.cwd !== undefined && label.cwd !== "" && { workdir: label.cwd }),
      ...(label.terminal && { terminal: size ?? { rows: 24, columns: 80 } }),
    });
    try {
      const pid = await command.started;
      return this.#add(id, command, pid, label);
    } catch (error) {
      const { failure } = await command.exit.catch(() => ({ failure: undefined }));
      if (failure === undefined) throw error;
      throw new Refusal(/user/i.test(failure) ? 401 : 400, failure);
    }
  }

  /** Takes in a program that an earlier platform started, or that a fork inherited. */
  async adopt(id: string, command: GuestCommand, label: Buffer): Promise<void> {
    const known = labelOf(label);
    if (known === undefined) return command.kill("nobody knows this program");
    this.#add(id, command, await command.started, known);
  }

  list(id: string): Process[] {
    return [...(this.#machines.get(id)?.values() ?? [])];
  }

  /** Throws a {@link Refusal} with 404 when no such program runs. */
  require(id: string, word: ProcessWord): Process {
    const found = this.list(id).find((one) => ("pid" in word ? one.pid === word.pid : one.label.tag === word.tag));
    if (found !== undefined) return found;
    throw new Refusal(
      404,
      `There is no process with ${"pid" in word ? `pid ${word.pid}` : `tag ${word.tag.slice(0, 80)}`}.`,
    );
  }

  #add(id: string, command: GuestCommand, pid: number, label: ProcessLabel): Process {
    const mine = this.#machines.get(id) ?? new Map<number, Process>();
    this.#machines.set(id, mine);
    const added = new Process(command, pid, label, () => {
      if (mine.get(pid) === added) mine.delete(pid);
      if (mine.size === 0 && this.#machines.get(id) === mine) this.#machines.delete(id);
    });
    mine.set(pid, added);
    return added;
  }
}

/** What the agent keeps of it: a long script is told to no other platform. */
function shortLabel(label: ProcessLabel): Buffer {
  const whole = Buffer.from(JSON.stringify(label));
  if (whole.length <= MOST_LABEL_BYTES) return whole;
  const { cmd, tag, terminal, stdin } = label;
  const short = Buffer.from(JSON.stringify({ cmd, args: [], envs: {}, tag, terminal, stdin }));
  if (short.length <= MOST_LABEL_BYTES) return short;
  throw new Refusal(400, "The program's path and its tag are too long.");
}

/** The machine kept it, and is not trusted with it. */
function labelOf(bytes: Buffer): ProcessLabel | undefined {
  try {
    const { cmd, args, envs, cwd, tag, terminal, stdin } = JSON.parse(bytes.toString("utf8")) as Record<
      string,
      unknown
    >;
    if (typeof cmd !== "string" || !Array.isArray(args)) return undefined;
    return {
      cmd,
      args: args.map(String),
      envs: Object.fromEntries(Object.entries(envs ?? {}).map(([name, value]) => [name, String(value)])),
      ...(typeof cwd === "string" && { cwd }),
      ...(typeof tag === "string" && { tag }),
      terminal: terminal === true,
      stdin: stdin === true,
    };
  } catch {
    return undefined;
  }
}
