/** A command is data: help, tests and the parser are made from it. */
import type { Context } from "./context.ts";
import type { Unit } from "./quantity.ts";

/** What stands after the name of a command. */
export interface Argument {
  /** `<name>` is needed, `[name]` may be left out, `...` repeats. */
  usage: string;
  description: string;
}

/** What a command may be told with `--`. */
export interface Option {
  /** e.g. `--memory <mb>`; a `--no-` option is true until it is given. */
  flags: string;
  description: string;
  /** May be given several times; the value is a list. */
  repeats?: boolean;
  choices?: readonly string[];
  /** A whole number of at least this. */
  minimum?: number;
  /** What that number counts, and so which forms are accepted: `seconds` also takes `5m`, `mb` also `1gb`. */
  unit?: Unit;
  /** Left out of help: another name for what help shows already. */
  hidden?: boolean;
}

/** What a command has to say when it is done. */
export interface Result {
  /** For `--json`. */
  document: unknown;
  /** For people. */
  text: string;
  /** What failed of several things, in order; the first one decides the exit code. */
  failures?: unknown[];
  /** Instead of 0: what a command in a machine ended with. */
  exitCode?: number;
}

/** One command. `Options` are its options as the parser names them (`--wait-timeout` is `waitTimeout`). */
export interface Command<Options = object> {
  name: string;
  /** Other words for it. Help shows the first. */
  aliases?: readonly string[];
  /** Left out of help: short for a command that is shown. */
  hidden?: boolean;
  summary: string;
  /** What `--help` says beyond the summary. */
  description?: string;
  arguments?: readonly Argument[];
  options?: readonly Option[];
  /** Whether it takes `--app`. */
  ofApp?: boolean;
  /** Whole lines, as a user would type them. At least one. */
  examples: readonly string[];
  run(context: Context, args: string[], options: Options): Promise<Result>;
}

/** Commands of one noun, e.g. `machine`; those of the noun "" stand at the top. */
export interface Noun {
  name: string;
  /** Other words for it. */
  aliases?: readonly string[];
  summary: string;
  commands: readonly Command[];
}

/** Keeps the type of a command's options inside its own file. */
export function command<Options extends object>(definition: Command<Options>): Command {
  return definition;
}
