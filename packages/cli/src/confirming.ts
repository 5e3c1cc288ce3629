/** Asks before something is lost: on a terminal with a question, elsewhere by requiring `--yes`. */
import type { Option } from "./command.ts";
import { Interrupted, UsageError } from "./failure.ts";
import { shown } from "./visible.ts";

/** The option that confirms in advance. */
export const YES = { flags: "-y, --yes", description: "do not ask" } as const satisfies Option;

interface Agreement {
  /** Confirmed in advance: the warning is only shown. */
  yes: boolean;
  /** What does not happen without confirmation: nothing is `destroyed`, nothing is `changed`. */
  what: "changed" | "destroyed" | "deleted";
  /** False where standard input is already taken. */
  canAsk?: boolean;
}

interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  /** Whether keys arrive one at a time. Default: detected. */
  terminal?: boolean;
}

/** Says what would be lost and returns only when the user confirms. Otherwise throws a usage error: nothing was done. */
export async function agree(warning: string, { yes, what, canAsk = true }: Agreement): Promise<void> {
  if (yes) return void process.stderr.write(shown(`${warning}\n`, process.stderr));
  if (!canAsk || !process.stdin.isTTY) throw new UsageError(`Nothing was ${what}. ${warning} Add --yes to confirm.`);
  if (!(await confirm(`${shown(warning, process.stderr)} Continue?`))) throw new UsageError(`Nothing was ${what}.`);
}

/** Asks a question. Anything but yes means no, and so does the end of the input. Ctrl-C rejects with {@link Interrupted}. */
export async function confirm(
  question: string,
  options: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  return /^y(es)?$/i.test((await ask(`${question} [y/N] `, options)).trim());
}

/** Asks a question and returns the line that is typed, "" at the end of the input. Ctrl-C rejects with {@link Interrupted}. */
export async function ask(
  question: string,
  options: Terminal = { input: process.stdin, output: process.stderr },
): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface(options);
  try {
    return await Promise.race([
      terminal.question(question),
      new Promise<string>((resolve) => terminal.once("close", () => resolve(""))),
      new Promise<never>((_resolve, reject) => {
        terminal.once("SIGINT", () => reject(new Interrupted("It was interrupted.", { quiet: true })));
      }),
    ]);
  } catch (error) {
    // Whatever follows, usually a shell prompt, starts on a new line.
    if (error instanceof Interrupted) options.output.write("\n");
    throw error;
  } finally {
    terminal.close();
  }
}
