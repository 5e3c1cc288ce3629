/** Asks before something is lost: on a terminal by a question, elsewhere by insisting on `--yes`. */
import type { Option } from "./command.ts";
import { Interrupted, UsageError } from "./failure.ts";

/** The option that agrees in advance. */
export const YES: Option = { flags: "-y, --yes", description: "do not ask" };

/** What is being agreed to. */
export interface Agreement {
  /** Agreed in advance: the warning is only shown. */
  yes: boolean;
  /** What does not happen without an agreement: nothing is `destroyed`, nothing is `changed`. */
  what: "changed" | "destroyed" | "deleted";
  /** False where standard input is already taken. */
  canAsk?: boolean;
}

/** Where a question is asked. */
export interface Terminal {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  /** Whether keys come one by one; found by itself when absent. */
  terminal?: boolean;
}

/** Says what would be lost, and returns only when that is agreed to. Otherwise a usage error: nothing was done. */
export async function agree(warning: string, { yes, what, canAsk = true }: Agreement): Promise<void> {
  if (yes) return void process.stderr.write(`${warning}\n`);
  if (!canAsk || !process.stdin.isTTY) throw new UsageError(`Nothing was ${what}. ${warning} Add --yes to agree.`);
  if (!(await confirm(`${warning} Go on?`))) throw new UsageError(`Nothing was ${what}.`);
}

/** Asks; anything but yes is no, and so is the end of the input. Ctrl-C rejects with {@link Interrupted}. */
export async function confirm(
  question: string,
  options: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface(options);
  try {
    const answer = await Promise.race([
      terminal.question(`${question} [y/N] `),
      new Promise<string>((resolve) => terminal.once("close", () => resolve(""))),
      new Promise<never>((_resolve, reject) => {
        terminal.once("SIGINT", () => reject(new Interrupted("It was interrupted.")));
      }),
    ]);
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    // What follows, a shell's prompt most likely, begins on a line of its own.
    if (error instanceof Interrupted) options.output.write("\n");
    throw error;
  } finally {
    terminal.close();
  }
}
