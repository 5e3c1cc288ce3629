/** The `hibernaut` program: parses the command line, runs one command, prints its result and sets the exit code. */
import { CommanderError } from "commander";
import type { Result } from "./command.ts";
import { Context } from "./context.ts";
import { EXIT, exitCodeOf, type Failure, failureText, toFailure } from "./failure.ts";
import { asksForJson } from "./output-format.ts";
import { buildProgram } from "./program.ts";
import { NOUNS } from "./commands.ts";
import { style } from "./terminal.ts";

declare const HIBERNAUT_VERSION: string;

// A reader that stops early (`hibernaut --help | head`) is not a failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
}

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  // Looked up in the raw words, because the error about a command line that cannot be parsed should be JSON too.
  const end = args.indexOf("--");
  const json = asksForJson(args);
  let code: number = EXIT.ok;
  const program = buildProgram(NOUNS, HIBERNAUT_VERSION, async (command, given, options, globals) => {
    const afterDashes = end === -1 ? undefined : args.length - end - 1;
    const context = new Context({ ...globals, afterDashes });
    if (command.ofApp === true && command.appIsNamed !== true) await context.findOnlyApp();
    code = report(await command.run(context, given, options), json);
  });
  // In commands, -v is short for another option.
  if (args.length === 1 && args[0] === "-v") args[0] = "--version";
  if (args.length === 0) {
    program.outputHelp({ error: false });
    return EXIT.ok;
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.ok;
      return EXIT.usage;
    }
    return fail(toFailure(error), json);
  }
}

function report({ document, text, failures = [], exitCode = EXIT.ok }: Result, json: boolean): number {
  if (json && document !== undefined) process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  if (!json && text !== "") process.stdout.write(`${text}\n`);
  const all = failures.map(toFailure);
  for (const failure of all) complain(failure);
  return all[0] === undefined ? exitCode : exitCodeOf(all[0]);
}

function fail(failure: Failure, json: boolean): number {
  if (json) process.stdout.write(`${JSON.stringify(failure, null, 2)}\n`);
  complain(failure);
  return exitCodeOf(failure);
}

function complain(failure: Failure): void {
  if (failure.error === "interrupted") return;
  process.stderr.write(`${style("red", "Error:", process.stderr)} ${failureText(failure)}\n`);
}
