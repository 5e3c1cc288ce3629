/** Shows long output through a pager, as git does: only on a terminal, and only what does not fit on it. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Command, Option } from "./command.ts";
import { write } from "./terminal.ts";
import { shown } from "./visible.ts";

/** The option of commands whose output may be long. It is what makes their output go through a pager. */
export const NO_PAGER = {
  flags: "--no-pager",
  description: "print long output as it is, without a pager",
} as const satisfies Option;

/** Whether a command's output goes through a pager if it is long. */
export function isPaged({ options = [] }: Command): boolean {
  return options.some(({ flags }) => flags === NO_PAGER.flags);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The pager's command for a shell: the user's, or `less`. Undefined where output is to be printed as it is. */
export function pagerOf({ HIBERNAUT_PAGER: own, PAGER: general, TERM: terminal }: Environment): string | undefined {
  const pager = (own ?? general ?? "less").trim();
  return pager === "" || pager === "cat" || terminal === "dumb" ? undefined : pager;
}

/** Where the pager begins: a list at its head, a log at its newest line. */
type Start = "head" | "end";

/**
 * What `less` does, unless the user's LESS says otherwise: ends by itself if all fits (F), shows colors (R), and leaves
 * the text on the screen (X).
 */
const LESS: Record<Start, string> = { head: "FRX", end: "FRX +G" };

/**
 * Prints the lines. On a terminal, those that do not fit go through the pager, unless `paged` is false, and control
 * characters are shown, unless the lines are `raw`. Resolves when the pager is quit, which may be before the last line.
 */
export async function printLines(
  given: AsyncIterable<string> | Iterable<string>,
  { paged, start = "head", raw = false }: { paged: boolean; start?: Start; raw?: boolean },
): Promise<void> {
  const lines = raw ? given : shownLines(given);
  const command = paged && process.stdout.isTTY ? pagerOf(process.env) : undefined;
  if (command === undefined) {
    for await (const line of lines) await write(`${line}\n`);
    return;
  }
  // The last row is the prompt's. Some terminals don't know their size.
  const room = (process.stdout.rows || 24) - 1;
  const held: string[] = [];
  let pager: Pager | undefined;
  for await (const line of lines) {
    // What is held is printed if the pager cannot be run; once it reads, it can.
    if (pager?.hasRead !== true) held.push(line);
    if (pager === undefined && rowsOf(held) > room) pager = new Pager(command, start, held);
    else if (pager !== undefined && !(await pager.print(line)) && (await pager.end())) return;
  }
  if (pager === undefined || !(await pager.end())) for (const line of held) await write(`${line}\n`);
}

async function* shownLines(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield shown(line, process.stdout);
}

/** How many rows of the terminal the lines take. */
function rowsOf(lines: readonly string[]): number {
  const columns = process.stdout.columns || 80;
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0);
}

/** What a shell exits with if there is no such program, or it cannot be run. */
const NOT_RUN = new Set([126, 127]);

class Pager {
  /** Whether it has taken what did not fit into the pipe. */
  hasRead = false;
  readonly #child: ChildProcessByStdio<Writable, null, null>;
  readonly #closed: Promise<unknown[]>;

  constructor(command: string, start: Start, lines: readonly string[]) {
    const env = { ...process.env, LESS: process.env.LESS ?? LESS[start] };
    this.#child = spawn("sh", ["-c", command], { env, stdio: ["pipe", "inherit", "inherit"] });
    this.#closed = once(this.#child, "close");
    // It may be quit before the end.
    this.#child.stdin.on("error", () => {});
    // Ctrl-C is the pager's: it ends a search, not the program.
    process.on("SIGINT", ignore);
    for (const line of lines) this.#child.stdin.write(`${line}\n`);
  }

  /** Whether the pager still takes lines. Waits while it reads nothing. */
  async print(line: string): Promise<boolean> {
    const { stdin } = this.#child;
    if (stdin.writable && !stdin.write(`${line}\n`)) {
      const drained = once(stdin, "drain").then(
        () => true,
        () => false, // it was quit meanwhile
      );
      this.hasRead ||= await Promise.race([drained, this.#closed.then(() => false)]);
    }
    return stdin.writable;
  }

  /** Resolves when the pager was quit: whether it ran at all. */
  async end(): Promise<boolean> {
    this.#child.stdin.end();
    const [code] = await this.#closed;
    process.off("SIGINT", ignore);
    return !NOT_RUN.has(code as number);
  }
}

function ignore(): void {}
