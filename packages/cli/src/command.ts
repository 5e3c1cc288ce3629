/** Commands are data: help, tests and the parser are built from their definitions. */
import type { Context } from "./context.ts";
import type { Unit } from "./quantity.ts";

/** What a word names: completion lists those that there are. */
export type Named =
  | "app"
  | "machine"
  | "volume"
  | "hostname"
  | "certificate"
  | "secret"
  | "token"
  | "webhook"
  | "registry"
  | "file";

/** An argument after the name of a command. */
export interface Argument {
  /** `<name>` is required, `[name]` is optional, `...` repeats. */
  usage: string;
  description: string;
  names?: Named;
}

/** An option of a command. */
export interface Option {
  /** For example `--memory <mb>`; a `--no-` option is true unless it is given. A value in brackets is `true` if left out. */
  flags: string;
  description: string;
  /** The option can be repeated; its value is a list. */
  repeats?: boolean;
  choices?: readonly string[];
  /** A whole number of at least this. */
  minimum?: number;
  /** And of at most this. */
  maximum?: number;
  /** The unit of the number, which decides the accepted forms: `seconds` also takes `5m`, `mb` also `1gb`. */
  unit?: Unit;
  /** What the option means without its optional value, in the form of a value. */
  preset?: string;
  /** Not shown in help: an alias of another option. */
  hidden?: boolean;
  names?: Named;
}

/** The option of commands about an app. */
export const APP: Option = {
  flags: "-a, --app <name>",
  description: "the app (default: HIBERNAUT_APP, `app` in ./hibernaut.toml, or the only app)",
};
/** The option of every command. */
export const JSON_OUTPUT: Option = { flags: "--json", description: "print one JSON document instead of text" };

/** The result of a command. */
export interface Result {
  /** For `--json`. */
  document: unknown;
  /** For people. */
  text: string;
  /** Failures among several items, in order; the first one decides the exit code. */
  failures?: unknown[];
  /** Replaces 0: the exit code of a command in a machine. */
  exitCode?: number;
}

/** One command, ready to run. */
export interface Command {
  name: string;
  /** Aliases. Help shows the first. */
  aliases?: readonly string[];
  /** Not shown in help: a short form of another command. */
  hidden?: boolean;
  summary: string;
  /** What `--help` adds to the summary. */
  description?: string;
  arguments?: readonly Argument[];
  options?: readonly Option[];
  /** Whether it takes `--app`. Without it, the only app of the platform is meant, unless `appIsNamed`. */
  ofApp?: boolean;
  /** The command creates an app or replaces what is in it, so it never guesses which. */
  appIsNamed?: boolean;
  /** Whole lines as a user would type them; at least one. */
  examples: readonly string[];
  run(context: Context, args: string[], options: object): Promise<Result>;
}

/** The commands of one noun, such as `machine`; those of the noun "" are at the top level. */
export interface Noun {
  name: string;
  /** Aliases. */
  aliases?: readonly string[];
  summary: string;
  commands: readonly Command[];
  /** Nouns below this one, as `snapshots` in `volumes snapshots list`. */
  nouns?: readonly Noun[];
}

/**
 * Defines a command. The type of `options` in `run` follows from the definitions of the options.
 *
 * @example
 * command({
 *   name: "stop",
 *   options: [{ flags: "--wait-timeout <time>", description: "...", minimum: 1, unit: "seconds" }],
 *   async run(context, args, { waitTimeout }) { ... }, // number | undefined
 *   ...
 * });
 */
export function command<const Options extends readonly Option[] = []>(
  definition: Omit<Command, "options" | "run"> & {
    options?: Options;
    run(context: Context, args: string[], options: OptionValues<Options>): Promise<Result>;
  },
): Command {
  return definition;
}

/** Defines an option for a time. `otherwise` is what it is by default, and `example` how it can be written. */
export function timeOption<const Flags extends string>(
  flags: Flags,
  what: string,
  otherwise: number | string,
  example = "5m",
) {
  const description = `${what}: seconds, or a unit as in ${example} (default: ${otherwise})`;
  return { flags, description, minimum: 1, unit: "seconds" } as const satisfies Option;
}

/** The values of options, named as the parser names them: `--wait-timeout` is `waitTimeout`. Those made at run time have no type here. */
export type OptionValues<Options extends readonly Option[]> = {
  [Each in Options[number] as string extends Each["flags"] ? never : KeyOf<Each["flags"]>]?: ValueOf<Each>;
};

type KeyOf<Flags extends string> = Long<Flags> extends `no-${infer Name}` ? Camel<Name> : Camel<Long<Flags>>;
type Long<Flags extends string> = Flags extends `${string}--${infer Rest}`
  ? Rest extends `${infer Name} ${string}`
    ? Name
    : Rest
  : never;
type Camel<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;
type ValueOf<Each extends Option> = Each extends { repeats: true }
  ? string[]
  : Each extends { choices: readonly (infer Choice)[] }
    ? Choice
    : Each extends { minimum: number }
      ? number
      : Each["flags"] extends `${string}<${string}`
        ? string
        : boolean;
