/** Parses a command line, runs one command and prints its result. */
import { CommanderError } from "commander";
import { carryOut } from "./carrying-out.ts";
import type { Result } from "./command.ts";
import { NOUNS } from "./commands.ts";
import { Context } from "./context.ts";
import { EXIT, exitCodeOf, failureText, Interrupted, toFailure } from "./failure.ts";
import { asksForJson } from "./output-format.ts";
import { isPaged, NO_PAGER, printLines } from "./pager.ts";
import { buildProgram } from "./program.ts";
import { style } from "./terminal.ts";
import { shown } from "./visible.ts";

declare const HIBERNAUT_VERSION: string;

/** Carries out the words of a command line, without the name of the program, and returns the exit code. */
export async function run(args: string[]): Promise<number> {
  // Looked up in the raw words, because the error about a command line that cannot be parsed should be JSON too.
  const end = args.indexOf("--");
  const json = asksForJson(args);
  let code: number = EXIT.ok;
  let help = "";
  const program = buildProgram(
    NOUNS,
    HIBERNAUT_VERSION,
    async (command, given, options, globals) => {
      const afterDashes = end === -1 ? undefined : args.length - end - 1;
      const context = new Context({ ...globals, afterDashes });
      const paged = isPaged(command) && (options as { pager?: boolean }).pager !== false;
      code = await report(await carryOut(command, context, given, options), { json, paged });
    },
    (text) => {
      help += text;
    },
  );
  // In commands, -v is short for another option.
  if (args.length === 1 && args[0] === "-v") args[0] = "--version";
  if (args.length === 0) {
    program.outputHelp({ error: false });
    process.stdout.write(help);
    return EXIT.ok;
  }
  try {
    await program.parseAsync(args, { from: "user" }).catch((error: unknown) => {
      // Help ends the parser like an error.
      if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
    });
    if (help !== "") await printLines(help.trimEnd().split("\n"), { paged: !args.includes(NO_PAGER.flags) });
    return code;
  } catch (error) {
    return error instanceof CommanderError ? EXIT.usage : fail(error, json);
  }
}

async function report(
  { document, text, failures = [], exitCode = EXIT.ok }: Result,
  { json, paged }: { json: boolean; paged: boolean },
): Promise<number> {
  if (json && document !== undefined)
    process.stdout.write(shown(`${JSON.stringify(document, null, 2)}\n`, process.stdout));
  if (!json && text !== "") await printLines(text.split("\n"), { paged });
  for (const failure of failures) complain(failure);
  return failures[0] === undefined ? exitCode : exitCodeOf(toFailure(failures[0]));
}

function fail(error: unknown, json: boolean): number {
  const failure = toFailure(error);
  if (json) process.stdout.write(shown(`${JSON.stringify(failure, null, 2)}\n`, process.stdout));
  complain(error);
  return exitCodeOf(failure);
}

function complain(error: unknown): void {
  const text = shown(failureText(toFailure(error)), process.stderr);
  if (!(error instanceof Interrupted)) process.stderr.write(`${style("red", "Error:", process.stderr)} ${text}\n`);
  // What Ctrl-C did is not an error, but what it ended should be said.
  else if (!error.quiet) process.stderr.write(`${text}\n`);
}
