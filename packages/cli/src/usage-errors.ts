/** Turns the parser's errors into sentences that lead to the help of the right command. */
import type { CommanderError, Command as Parser } from "commander";
import { UsageError } from "./failure.ts";
import { closest, elsewhere } from "./suggest.ts";

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

/** The names and aliases of the commands below `parser`. */
function namesBelow(parser: Parser): string[] {
  return parser.commands.flatMap((command) => [command.name(), ...command.aliases()]);
}

function wayOut({ code, message }: CommanderError, parser: Parser): string | undefined {
  if (code === "commander.unknownCommand") return wayOutOfCommand(parser.args[0] ?? "", parser);
  if (code !== "commander.unknownOption") return undefined;
  const [, flag = ""] = /'--?([^'=]+)/.exec(message) ?? [];
  const known = parser.options.flatMap(({ long }) => (long === undefined || long === null ? [] : long.slice(2)));
  const near = closest(flag, known);
  return near === undefined ? undefined : `Did you mean --${near}?`;
}

function wayOutOfCommand(word: string, parser: Parser): string {
  const nouns = pathOf(parser).split(" ").slice(1);
  const other = elsewhere([...nouns, word]);
  if (other !== undefined) return other;
  const near = closest(word, namesBelow(parser));
  return near === undefined ? `See \`${pathOf(parser)} --help\`.` : `Did you mean ${near}?`;
}

/** `error: unknown command 'x'` without the further lines that the parser adds. */
function sentenceOf(message: string): string {
  const [what = ""] = message.replace(/^error: /, "").split("\n");
  const sentence = what.charAt(0).toUpperCase() + what.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
