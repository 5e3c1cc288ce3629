/** What could come next on a command line: a pure function of the definitions of commands and the words so far. */
import { type Command, JSON_OUTPUT, type Named, type Noun, type Option } from "../command.ts";

interface Choice {
  word: string;
  description: string;
}

interface Completion {
  choices: Choice[];
  /** Words that only the platform or the file system knows; `app` is the app of the command line, if it names one. */
  names?: { kind: Named; app: string | undefined; before: string };
}

const NOTHING: Completion = { choices: [] };

const APP: Option = { flags: "-a, --app <name>", description: "the app", names: "app" };
const EVERYWHERE: readonly Option[] = [JSON_OUTPUT, { flags: "-h, --help", description: "show help" }];

/**
 * Completes the last word, which may be empty. The words before it must not include the name of the program.
 *
 * @example
 * complete(NOUNS, ["machine", "sta"]) // { choices: [{ word: "start", ... }, { word: "status", ... }] }
 */
export function complete(nouns: readonly Noun[], words: readonly string[]): Completion {
  const [root, ...others] = nouns;
  let level = { commands: root?.commands ?? [], nouns: others as readonly Noun[] };
  const last = words.at(-1) ?? "";
  for (const [index, word] of words.slice(0, -1).entries()) {
    const command = level.commands.find((one) => isCalled(one, word));
    if (command !== undefined) return completeCommand(command, words.slice(index + 1));
    const noun = level.nouns.find((one) => isCalled(one, word));
    if (noun === undefined) return NOTHING;
    level = { commands: noun.commands, nouns: noun.nouns ?? [] };
  }
  if (last.startsWith("-")) return { choices: beginning(last, EVERYWHERE.slice(1).map(asChoice)) };
  return { choices: beginning(last, [...level.commands, ...level.nouns].map(wordOf).filter(isPublic)) };
}

function completeCommand(command: Command, words: readonly string[]): Completion {
  const options = [...(command.options ?? []), ...(command.ofApp === true ? [APP] : []), ...EVERYWHERE];
  const given = readOptions(options, words);
  const { last, app } = given;
  if (given.afterDashes) return NOTHING;
  if (given.open !== undefined) return valuesOf(given.open, { app, last, before: "" });
  const [flag, value] = splitAtEquals(last);
  if (value !== undefined) {
    const option = options.find((one) => longFlag(one) === flag);
    return option === undefined ? NOTHING : valuesOf(option, { app, last: value, before: `${flag}=` });
  }
  if (last.startsWith("-")) {
    const left = options.filter(
      (option) => option.hidden !== true && (option.repeats === true || !given.used.has(option)),
    );
    return { choices: beginning(last, left.map(asChoice)) };
  }
  const wanted = command.arguments ?? [];
  const argument = wanted[given.words] ?? (wanted.at(-1)?.usage.includes("...") === true ? wanted.at(-1) : undefined);
  return argument?.names === undefined ? NOTHING : { choices: [], names: { kind: argument.names, app, before: "" } };
}

interface Given {
  used: Set<Option>;
  /** How many words are arguments of the command. */
  words: number;
  app: string | undefined;
  /** The option whose value the last word is. */
  open: Option | undefined;
  afterDashes: boolean;
  last: string;
}

function readOptions(options: readonly Option[], words: readonly string[]): Given {
  const given: Given = { used: new Set(), words: 0, app: undefined, open: undefined, afterDashes: false, last: "" };
  for (const [index, word] of words.entries()) {
    given.last = word;
    if (index === words.length - 1) break;
    if (given.open !== undefined) {
      if (given.open === APP) given.app = word;
      given.open = undefined;
    } else if (word === "--") given.afterDashes = true;
    else if (word.startsWith("-")) {
      const [flag, value] = splitAtEquals(word);
      const option = options.find(({ flags }) => flags.split(/[ ,]+/).includes(flag));
      if (option === undefined) continue;
      given.used.add(option);
      if (option === APP && value !== undefined) given.app = value;
      if (value === undefined && option.flags.includes("<")) given.open = option;
    } else given.words += 1;
  }
  return given;
}

function valuesOf(
  { choices = [], names: kind, flags }: Option,
  { app, last, before }: { app: string | undefined; last: string; before: string },
): Completion {
  const known = choices.length > 0 ? choices : flags.endsWith("<on|off>") ? ["on", "off"] : [];
  const words = beginning(
    last,
    known.map((word) => ({ word, description: "" })),
  );
  return {
    choices: words.map(({ word, description }) => ({ word: before + word, description })),
    ...(kind !== undefined && { names: { kind, app, before } }),
  };
}

function splitAtEquals(word: string): [flag: string, value: string | undefined] {
  const at = word.startsWith("--") ? word.indexOf("=") : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}

function longFlag({ flags }: Option): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags;
}

function asChoice(option: Option): Choice {
  return { word: longFlag(option), description: option.description };
}

function wordOf({ name, summary }: Command | Noun): Choice {
  return { word: name, description: summary };
}

/** A command that only scripts call begins with an underscore. */
function isPublic({ word }: Choice): boolean {
  return !word.startsWith("_");
}

function isCalled({ name, aliases = [] }: Command | Noun, word: string): boolean {
  return name === word || aliases.includes(word);
}

function beginning(start: string, choices: readonly Choice[]): Choice[] {
  return choices.filter(({ word }) => word.startsWith(start));
}
