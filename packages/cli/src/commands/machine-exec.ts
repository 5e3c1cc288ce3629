/** `hibernaut machine exec` and `console`: run commands in a machine. */
import type { ExecSession } from "@hibernaut/client";
import { type Command, command, type Option, type OptionValues, timeOption } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError, UsageError } from "../failure.ts";
import { given } from "../option-values.ts";
import { write } from "../terminal.ts";
import { shown } from "../visible.ts";
import { awake, NO_WAKE } from "../waking.ts";
import { chosenMachine, MACHINE, machineOf } from "../which-machine.ts";

const TIMED_OUT = 124;
/** What `console` runs: bash if the image has it, otherwise sh. */
const SHELL = ["/bin/sh", "-c", "exec $(command -v bash || command -v sh) -l"];

const OPTIONS = [
  { flags: "--user <user>", description: "run as this user[:group] (default: the image's)" },
  { flags: "--workdir <directory>", description: "run in this directory (default: the image's)" },
  NO_WAKE,
] as const satisfies readonly Option[];

interface ExecOptions extends OptionValues<typeof OPTIONS> {
  tty?: boolean;
  /** Seconds. */
  timeout?: number;
}

const exec = command({
  name: "exec",
  summary: "Run a command in a machine",
  description:
    "Wakes the machine if it sleeps. Streams input and output. The exit code is the command's, or 124 after --timeout. Put the command after --. With --json, its output is in the document, up to 1 MB for each of stdout and stderr.",
  arguments: [MACHINE, { usage: "[command...]", description: "the command and its arguments; put it after --" }],
  options: [
    { flags: "-t, --tty", description: "use a terminal of the same size as this one" },
    timeOption("--timeout <time>", "kill the command and its process group after this time", "never"),
    ...OPTIONS,
  ],
  ofApp: true,
  examples: [
    "hibernaut machine exec --app shop -- ls -l /app",
    "hibernaut machine exec 3f9c01ab22de41 -t -- sh",
    "echo 'select 1' | hibernaut machine exec 3f9c01ab22de41 -- psql",
  ],
  async run(context, typed, options) {
    const [word, words] = splitCommand(typed, context.afterDashes);
    if (options.tty && !context.json)
      requireTerminal("--tty needs a terminal. Run the command from a terminal, or leave --tty out.");
    const machine = await machineOf(context, word);
    const { id } = machine;
    await awake(context, machine, "exec", options);
    if (!context.json) return attach(context, id, words, options);
    const document = await (await context.client()).runExec(context.app, id, { command: words, ...limits(options) });
    return { document, text: "", exitCode: document.timed_out ? TIMED_OUT : document.exit_code };
  },
});

const console = command({
  name: "console",
  summary: "Open a shell in a machine",
  description:
    "Wakes the machine if it sleeps. If the app has several machines and you name none, you are asked which one.",
  arguments: [MACHINE],
  options: OPTIONS,
  ofApp: true,
  examples: ["hibernaut machine console 3f9c01ab22de41 --app shop"],
  async run(context, [word], options) {
    requireTerminal("A shell needs a terminal. To run one command: hibernaut machine exec [id] -- <command>");
    const machine = await chosenMachine(context, word);
    const { id } = machine;
    await awake(context, machine, "console", options);
    return attach(context, id, SHELL, { ...options, tty: true });
  },
});

/** The machine, if one is named, and the command: the words after `--`, or otherwise those after the machine. */
function splitCommand(typed: readonly string[], afterDashes = 0): [string | undefined, string[]] {
  const before = typed.length - afterDashes;
  const named = before > 0 ? 1 : 0;
  const words = typed.slice(named);
  if (words.length > 0) return [typed.slice(0, named)[0], words];
  throw new UsageError("No command. Put it after --, as in: hibernaut machine exec [id] -- ls -l");
}

function limits({ timeout, user, workdir }: ExecOptions) {
  return given({ timeout, user, workdir });
}

function requireTerminal(refusal: string): void {
  if (!(process.stdin.isTTY && process.stdout.isTTY)) throw new UsageError(refusal);
}

async function attach(context: Context, id: string, words: string[], options: ExecOptions) {
  const { tty = false, timeout } = options;
  const { stdin, stdout, stderr } = process;
  const client = await context.client();
  const session = await client.openExec(context.app, id, {
    command: words,
    stdin: true,
    ...(tty && { tty, ...sizeOf(stdout), term: process.env.TERM ?? "xterm" }),
    ...limits(options),
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
        `The command did not finish within ${timeout} s and was killed. Allow more time with --timeout.`,
      );
    if (exit.exit_code === null) throw new CliError("aborted", `The command did not finish: ${exit.error}.`);
    if (exit.error !== null) stderr.write(shown(`${exit.error}\n`, process.stderr));
    return { document: undefined, text: "", exitCode: exit.exit_code };
  } finally {
    restore();
    // A stream that is still being read would keep this process alive.
    stdin.unpipe(session.stdin).destroy();
  }
}

/** Sends every key to the command and keeps its terminal the size of this one. Returns a function that undoes it. */
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

/** The size of a terminal; serial lines and some containers report none. */
function sizeOf({ rows, columns }: { rows?: number; columns?: number }): { rows: number; columns: number } {
  return { rows: rows || 24, columns: columns || 80 };
}

/** Copies a stream, without ending `to` as a pipe would. */
async function copy(from: ExecSession["stdout"], to: NodeJS.WriteStream): Promise<void> {
  for await (const chunk of from as AsyncIterable<Buffer>) await write(chunk, to);
}

export const execCommands: readonly Command[] = [exec, console];
