/** Turns the parser's errors into sentences that lead to the help of the right command. */
import type { CommanderError, Command as Parser } from "commander";
import { UsageError } from "./failure.ts";
import { elsewhere } from "./habits.ts";
import { closest } from "./suggest.ts";

/** Explains an error, and what to do next. */
export function explain(error: CommanderError, parser: Parser): UsageError {
  const sentence = sentenceOf(error.message);
  return new UsageError(`${sentence} ${wayOut(error, parser) ?? `See \`${pathOf(parser)} --help\`.`}`);
}

/** The error for a command that does not exist below `parser`. */
export function unknownCommand(word: string, parser: Parser): UsageError {
  return new UsageError(`Unknown command '${word}'. ${wayOutOfCommand(word, parser)}`);
}

/** `hibernaut machine status` */
export function pathOf(parser: Parser): string {
  return parser.parent === null ? parser.name() : `${pathOf(parser.parent)} ${parser.name()}`;
}

/** The words after `hibernaut`. */
function wordsOf(parser: Parser): string[] {
  return pathOf(parser).split(" ").slice(1);
}

/** The names and aliases of the commands below `parser`. */
function namesBelow(parser: Parser): string[] {
  return parser.commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

function wayOut({ code, message }: CommanderError, parser: Parser): string | undefined {
  if (code === "commander.unknownCommand") return wayOutOfCommand(parser.args[0] ?? "", parser);
  if (code !== "commander.unknownOption") return undefined;
  const [, typed = ""] = /'(--?[^'=]+)/.exec(message) ?? [];
  const other = elsewhere([...wordsOf(parser), typed]);
  if (other !== undefined) return other;
  const flag = typed.replace(/^--?/, "");
  const known = parser.options.flatMap(({ long }) => (long === undefined || long === null ? [] : long.slice(2)));
  const near = closest(flag, known);
  return near === undefined ? undefined : `Did you mean --${near}?`;
}

function wayOutOfCommand(word: string, parser: Parser): string {
  const other = elsewhere([...wordsOf(parser), word]);
  if (other !== undefined) return other;
  const near = closest(word, namesBelow(parser));
  if (near !== undefined) return `Did you mean ${near}?`;
  const below = parser.commands.filter(({ commands }) => commands.some((command) => isCalled(command, word)));
  const [last, ...others] = below.map((noun) => `${pathOf(noun)} ${word}`).toReversed();
  if (last === undefined || others.length >= MOST_MEANT) return `See \`${pathOf(parser)} --help\`.`;
  return `Did you mean ${others.length === 0 ? "" : `${others.toReversed().join(", ")} or `}${last}?`;
}

/** A verb that more nouns have than this says nothing about which is meant. */
const MOST_MEANT = 3;

function isCalled(command: Parser, word: string): boolean {
  return [command.name(), ...command.aliases()].includes(word);
}

/** `error: unknown command 'x'` without the further lines that the parser adds. */
function sentenceOf(message: string): string {
  const [what = ""] = message.replace(/^error: /, "").split("\n");
  const sentence = what.charAt(0).toUpperCase() + what.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
