/** `-o wide` and `-o json`: how a list is shown. */
import type { Option, OptionValues } from "./command.ts";
import { NO_PAGER } from "./pager.ts";
import { type Spare, table } from "./terminal.ts";

/** The option of every command that shows a table. `-o json` is `--json`: the parser turns it into that. */
export const OUTPUT = {
  flags: "-o, --output <format>",
  description: "wide: every column, and nothing shortened; json: the same as --json",
  choices: ["wide", "json"],
} as const satisfies Option;

/** The options of commands that show a table, which may be long. */
export const TABLE = [OUTPUT, NO_PAGER] as const satisfies readonly Option[];

export type OutputOptions = OptionValues<[typeof OUTPUT]>;

/**
 * A table that fits into the terminal, without the spare columns if it must; with `-o wide`, all of it, however wide.
 * The first row is the header.
 */
export function outputTable(
  rows: readonly (readonly string[])[],
  { output }: OutputOptions,
  spare: Spare = [],
): string {
  return output === "wide" ? table(rows, { width: Number.POSITIVE_INFINITY }) : table(rows, { spare });
}

/** Whether the words of a command line ask for JSON. For the errors of one that cannot be parsed. */
export function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  const own = end === -1 ? words : words.slice(0, end);
  return own.some(
    (word, index) =>
      word === "--json" ||
      /^(?:-o=?|--output=)json$/.test(word) ||
      (word === "json" && /^(?:-o|--output)$/.test(own[index - 1] ?? "")),
  );
}
