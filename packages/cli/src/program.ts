/** Builds the parser from the command definitions. */
import { Argument, InvalidArgumentError, Command as Parser, Option as ParserOption } from "commander";
import { APP, type Command, JSON_OUTPUT, type Noun, type Option } from "./command.ts";
import type { GlobalOptions } from "./context.ts";
import { UsageError } from "./failure.ts";
import type { OutputOptions } from "./output-format.ts";
import { acceptedForms, type Quantity, readQuantity } from "./quantity.ts";
import { explain, pathOf, unknownCommand } from "./usage-errors.ts";

/** Called with the command that the user asked for. */
type Execute = (command: Command, args: string[], options: object, globals: GlobalOptions) => Promise<void>;

/** What one needs first. Help lists these before all others. */
const FIRST = new Set(["serve", "doctor", "launch", "deploy", "status", "ps", "logs", "open", "machine", "secrets"]);

/** Builds the parser of the whole CLI. `writeOut` gets help and the version. */
export function buildProgram(
  nouns: readonly Noun[],
  version: string,
  execute: Execute,
  writeOut = (text: string): void => void process.stdout.write(text),
): Parser {
  const program = new Parser("hibernaut")
    .description("Machines that sleep: apps in virtual machines that suspend to disk and resume in milliseconds.")
    .version(version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .showSuggestionAfterError(false)
    .configureHelp({ commandUsage: (command) => `${pathOf(command)} ${command.usage()}`, subcommandTerm: termOf })
    .addHelpText("after", ROOT_HELP);
  for (const noun of nouns) addNoun(program, noun, execute);
  for (const command of program.commands)
    command.helpGroup(FIRST.has(command.name()) ? "Commands to begin with:" : "More commands:");
  program.command("version", { hidden: true }).action(() => void program.parse(["--version"], { from: "user" }));
  for (const parser of everyParser(program))
    parser.configureOutput({ outputError: () => {}, writeOut }).exitOverride((error) => {
      // Help and version arrive here too.
      throw error.exitCode === 0 || error.code === "commander.help" ? error : explain(error, parser);
    });
  return program;
}

/** Adds a noun with its commands and the nouns below it. The noun "" is the program itself. */
function addNoun(program: Parser, noun: Noun, execute: Execute): void {
  const parent = noun.name === "" ? program : program.command(noun.name).description(noun.summary);
  if (parent !== program)
    parent
      .aliases(noun.aliases ?? [])
      .helpOption("-h, --help", "show help")
      .addHelpText("after", nounHelp(noun));
  for (const command of noun.commands) addCommand(parent, command, execute);
  for (const below of noun.nouns ?? []) addNoun(parent, below, execute);
  addHelpCommand(parent);
}

/** Adds `help`, `help machine` and `machine help status`, which do the same as `--help`. */
function addHelpCommand(parent: Parser): void {
  parent.helpCommand(false);
  parent
    .command("help", { hidden: true })
    .argument("[command...]")
    .action((words: string[]) => {
      let parser = parent;
      for (const word of words) {
        const next = parser.commands.find((command) => [command.name(), ...command.aliases()].includes(word));
        if (next === undefined) throw unknownCommand(word, parser);
        parser = next;
      }
      parser.outputHelp();
    });
}

/** How help lists a command. Aliases of nouns are not listed. */
function termOf(command: Parser): string {
  const [alias] = command.commands.length > 0 ? [] : command.aliases();
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? ` <${name}>` : ` [${name}]`;
  });
  return `${command.name()}${alias === undefined ? "" : `|${alias}`}${words.join("")}`;
}

const ROOT_HELP = `
Examples:
  $ hibernaut serve
  $ hibernaut apps create shop
  $ hibernaut machine run oci:/srv/shop:latest --app shop --port 8080 --autostop suspend
  $ curl http://shop.localhost:8080/
  $ hibernaut deploy

Every command has --help with examples and --json for scripts.
start, stop, suspend, restart, destroy, exec and console are short forms of \`hibernaut machine\` commands.
Name a machine by its id, its name, or the beginning of its id. If the app has one machine, you can leave it out.
Durations and sizes take units: 30s, 5m, 1h; 512mb, 1gb.
The CLI finds the platform by HIBERNAUT_API_URL and HIBERNAUT_API_TOKEN, or by the file that \`serve\` wrote.
Exit codes: 0 success, 1 failure, 2 wrong command or argument, 124 timed out, 130 interrupted.`;

function nounHelp({ commands }: Noun): string {
  return examplesText(commands.flatMap((command) => command.examples.slice(0, 1)).slice(0, 4));
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

function addCommand(parent: Parser, command: Command, execute: Execute): void {
  const parser = parent
    .command(command.name, { hidden: command.hidden ?? false })
    .aliases(command.aliases ?? [])
    .summary(command.summary)
    .description(command.description ? `${command.summary}. ${command.description}` : `${command.summary}.`)
    .helpOption("-h, --help", "show help")
    .addHelpText("after", examplesText(command.examples));
  for (const { usage, description } of command.arguments ?? []) parser.addArgument(new Argument(usage, description));
  for (const option of command.options ?? []) parser.addOption(parserOption(option));
  if (command.ofApp) parser.option(APP.flags, APP.description);
  refuseContradictions(parser, command.options ?? []);
  parser.option(JSON_OUTPUT.flags, JSON_OUTPUT.description);
  parser.action(() => {
    const { json: asked, app, ...options } = parser.opts<GlobalOptions & Record<string, unknown>>();
    const { output } = options as OutputOptions;
    if (asked && output === "wide") throw new UsageError("--json and -o wide exclude each other. Choose one.");
    const json = asked || output === "json";
    // `tokens create` takes several.
    const own = Array.isArray(app) ? { ...options, app } : options;
    const one = typeof app === "string" ? { app } : {};
    return execute(command, parser.args, own, { ...(json && { json }), ...one });
  });
}

/** Refuses `--upload` together with `--no-upload`: for the parser, the last one would win. */
function refuseContradictions(parser: Parser, options: readonly Option[]): void {
  const names = new Set(options.map(({ flags }) => /--([\w-]+)/.exec(flags)?.[1] ?? ""));
  for (const name of names) {
    if (!names.has(`no-${name}`)) continue;
    const given = new Set<string>();
    for (const one of [name, `no-${name}`])
      parser.on(`option:${one}`, () => {
        if (given.add(one).size > 1) throw new UsageError(`--${name} and --no-${name} exclude each other. Choose one.`);
      });
  }
}

function parserOption(option: Option): ParserOption {
  const { flags, minimum, maximum, unit } = option;
  const made = new ParserOption(flags, option.description).hideHelp(option.hidden ?? false);
  if (option.choices) made.choices(option.choices);
  // An option whose value can be left out says yes then, unless it says something else.
  if (flags.endsWith("]")) made.preset(option.preset ?? "true");
  if (minimum !== undefined) made.argParser((text) => number(text, { minimum, maximum, unit }));
  if (option.repeats) made.argParser((text, before: string[] | undefined) => [...(before ?? []), text]);
  return made;
}

function number(text: string, quantity: Quantity): number {
  const value = readQuantity(text, quantity);
  if (value === undefined) throw new InvalidArgumentError(acceptedForms(quantity));
  return value;
}

function everyParser(parser: Parser): Parser[] {
  return [parser, ...parser.commands.flatMap(everyParser)];
}
