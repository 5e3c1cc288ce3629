/** Runs a command. */
import type { Command, Result } from "./command.ts";
import type { Context } from "./context.ts";

/** Runs the command, once it is known which app is meant: nothing is said or done before that. */
export async function carryOut(command: Command, context: Context, args: string[], options: object): Promise<Result> {
  if (command.ofApp === true && command.appIsNamed !== true) await context.findOnlyApp();
  return command.run(context, args, options);
}
