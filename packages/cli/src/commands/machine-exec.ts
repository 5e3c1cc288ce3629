/** `hibernaut machine exec` and `console`: commands in a machine. */
import type { ExecSession } from "@hibernaut/client";
import { type Command, command } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError, UsageError } from "../failure.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const TIMED_OUT = 124;
/** What `console` runs: the login shell of most images, else the one that every shell image has. */
const SHELL = ["/bin/sh", "-c", "exec $(command -v bash || command -v sh) -l"];

interface ExecOptions {
  tty?: boolean;
  timeout?: number;
  user?: string;
  workdir?: string;
}

const OPTIONS = [
  { flags: "--user <user>", description: "run as user[:group] (default: the image's)" },
  { flags: "--workdir <folder>", description: "run in this folder (default: the image's)" },
];

const exec = command<ExecOptions>({
  name: "exec",
  summary: "Run a command in a running machine",
  description:
    "Input and outputs are streamed, and the exit code is the command's; 124 after --timeout. What follows -- is the command. With --json its outputs are in the document, at most 1 MB each.",
  arguments: [MACHINE, { usage: "[command...]", description: "the command and its arguments; put it after --" }],
  options: [
    { flags: "-t, --tty", description: "with a terminal that follows the size of this one" },
    {
      flags: "--timeout <time>",
      description: "kill it with its process group after this, in seconds, or e.g. 5m (default: never)",
      minimum: 1,
      unit: "seconds",
    },
    ...OPTIONS,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine exec --app shop -- ls -l /app",
    "hibernaut machine exec 3f9c01ab22de41 -t -- sh",
    "echo 'select 1' | hibernaut machine exec 3f9c01ab22de41 -- psql",
  ],
  async run(context, given, options) {
    const [word, words] = splitCommand(given, context.afterDashes);
    if (options.tty && !context.json)
      requireTerminal("--tty needs a terminal, and this is none. Leave it out, or run it from a terminal.");
    const { id } = await machineOf(context, word);
    if (!context.json) return attach(context, id, words, options);
    const { timeout, user, workdir } = options;
    const document = await (await context.client()).runExec(context.app, id, {
      command: words,
      ...(timeout !== undefined && { timeout }),
      ...(user !== undefined && { user }),
      ...(workdir !== undefined && { workdir }),
    });
    return { document, text: "", exitCode: document.timed_out ? TIMED_OUT : document.exit_code };
  },
});

const console = command<ExecOptions>({
  name: "console",
  summary: "Open a shell in a running machine",
  arguments: [MACHINE],
  options: OPTIONS,
  ofApp: true,
  examples: ["hibernaut machine console 3f9c01ab22de41 --app shop"],
  async run(context, [word], options) {
    requireTerminal(
      "A shell needs a terminal, and this is none. Run one command: hibernaut machine exec [id] -- <command>",
    );
    const { id } = await machineOf(context, word);
    return attach(context, id, SHELL, { ...options, tty: true });
  },
});

/** The machine, if one is named, and the command: what stands after `--`, else what stands after the machine. */
function splitCommand(given: readonly string[], afterDashes = 0): [string | undefined, string[]] {
  const before = given.length - afterDashes;
  const named = before > 0 ? 1 : 0;
  const words = given.slice(named);
  if (words.length > 0) return [given.slice(0, named)[0], words];
  throw new UsageError("No command is named. Put it after --, as in: hibernaut machine exec [id] -- ls -l");
}

function requireTerminal(refusal: string): void {
  if (!(process.stdin.isTTY && process.stdout.isTTY)) throw new UsageError(refusal);
}

async function attach(context: Context, id: string, words: string[], options: ExecOptions) {
  const { tty = false, timeout, user, workdir } = options;
  const { stdin, stdout, stderr } = process;
  const client = await context.client();
  const session = await client.openExec(context.app, id, {
    command: words,
    stdin: true,
    ...(tty && { tty, ...sizeOf(stdout), term: process.env.TERM ?? "xterm" }),
    ...(timeout !== undefined && { timeout }),
    ...(user !== undefined && { user }),
    ...(workdir !== undefined && { workdir }),
  });
  const restore = tty ? takeTerminal(session) : () => {};
  const stop = () => session.kill();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  try {
    stdin.pipe(session.stdin);
    const written = Promise.all([copy(session.stdout, stdout), copy(session.stderr, stderr)]);
    const exit = await session.exit;
    await written;
    if (exit.timed_out)
      throw new CliError(
        "deadline_exceeded",
        `The command did not end in ${timeout} s and was killed. Give it longer with --timeout.`,
      );
    if (exit.exit_code === null) throw new CliError("aborted", `The command did not end: ${exit.error}.`);
    if (exit.error !== null) stderr.write(`${exit.error}\n`);
    return { document: undefined, text: "", exitCode: exit.exit_code };
  } finally {
    restore();
    // Reading it would keep this process alive.
    stdin.unpipe(session.stdin).destroy();
  }
}

/** Every key goes to the command, and the size of its terminal follows this one. Returns how to end that. */
function takeTerminal(session: ExecSession): () => void {
  const { stdin, stdout } = process;
  const follow = () => {
    const { rows, columns } = sizeOf(stdout);
    session.resize(rows, columns);
  };
  stdin.setRawMode(true);
  stdout.on("resize", follow);
  return () => {
    stdin.setRawMode(false);
    stdout.off("resize", follow);
  };
}

/** Serial lines and some containers have terminals of no size. */
export function sizeOf({ rows, columns }: { rows?: number; columns?: number }): { rows: number; columns: number } {
  return { rows: rows || 24, columns: columns || 80 };
}

/** Without ending `to`, as a pipe would. */
async function copy(from: ExecSession["stdout"], to: NodeJS.WriteStream): Promise<void> {
  for await (const chunk of from as AsyncIterable<Buffer>) {
    if (!to.write(chunk)) await new Promise((resolve) => to.once("drain", resolve));
  }
}

/** The commands that run commands. */
export const execCommands: readonly Command[] = [exec, console];
