/** Turns the commands into a parser. */
import { Argument, InvalidArgumentError, Command as Parser, Option as ParserOption } from "commander";
import type { Command, Noun, Option } from "./command.ts";
import type { GlobalOptions } from "./context.ts";
import { acceptedForms, type Quantity, readQuantity } from "./quantity.ts";

/** Called with what the user asked for. */
export type Execute = (command: Command, args: string[], options: object, globals: GlobalOptions) => Promise<void>;

/** The whole command line. */
export function buildProgram(nouns: readonly Noun[], version: string, execute: Execute): Parser {
  const program = new Parser("hibernaut")
    .description("Machines that sleep: apps in virtual machines that suspend to disk and resume in milliseconds.")
    .version(version, "--version", "show the version")
    .helpOption("-h, --help", "show this")
    .helpCommand(false)
    .addHelpText("after", ROOT_HELP);
  for (const noun of nouns) {
    const parent = noun.name === "" ? program : program.command(noun.name).description(noun.summary);
    if (parent !== program)
      parent.helpCommand(false).helpOption("-h, --help", "show this").addHelpText("after", nounHelp(noun));
    for (const command of noun.commands) addCommand(parent, command, execute);
  }
  for (const parser of everyParser(program)) parser.exitOverride().configureOutput({ outputError: () => {} });
  return program;
}

const ROOT_HELP = `
Examples:
  $ hibernaut serve
  $ hibernaut apps create shop
  $ hibernaut machine run oci:/srv/shop:latest --app shop --port 8080 --autostop suspend
  $ curl http://shop.localhost:8080/
  $ hibernaut deploy

Every command has --help with examples, and --json for scripts.
The platform is found by HIBERNAUT_API_URL and HIBERNAUT_API_TOKEN, else by the file that \`serve\` wrote.
Exit codes: 0 done, 1 failed, 2 wrong usage, 124 timed out.`;

function nounHelp({ commands }: Noun): string {
  return examplesText(commands.flatMap((command) => command.examples.slice(0, 1)).slice(0, 4));
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

function addCommand(parent: Parser, command: Command, execute: Execute): void {
  const parser = parent
    .command(command.name)
    .summary(command.summary)
    .description(command.description ? `${command.summary}. ${command.description}` : `${command.summary}.`)
    .helpOption("-h, --help", "show this")
    .addHelpText("after", examplesText(command.examples));
  for (const { usage, description } of command.arguments ?? []) parser.addArgument(new Argument(usage, description));
  for (const option of command.options ?? []) parser.addOption(parserOption(option));
  if (command.ofApp) parser.option("-a, --app <name>", "the app; else HIBERNAUT_APP, else `app` in ./hibernaut.toml");
  parser.option("--json", "print one JSON document instead of text");
  parser.action(() => {
    const { json, app, ...options } = parser.opts<GlobalOptions & Record<string, unknown>>();
    return execute(command, parser.args, options, { ...(json && { json }), ...(app !== undefined && { app }) });
  });
}

function parserOption({ flags, description, repeats, choices, minimum, unit, hidden }: Option): ParserOption {
  const option = new ParserOption(flags, description).hideHelp(hidden);
  if (choices) option.choices(choices);
  if (minimum !== undefined) option.argParser((text) => number(text, { minimum, unit }));
  if (repeats) option.argParser((text, before: string[] | undefined) => [...(before ?? []), text]);
  return option;
}

function number(text: string, quantity: Quantity): number {
  const value = readQuantity(text, quantity);
  if (value === undefined) throw new InvalidArgumentError(acceptedForms(quantity));
  return value;
}

function everyParser(parser: Parser): Parser[] {
  return [parser, ...parser.commands.flatMap(everyParser)];
}
