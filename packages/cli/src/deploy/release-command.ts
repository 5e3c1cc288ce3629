/** Runs the release command of a deploy and shows what it prints. */
import type { MachineConfig, Release } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { CliError, toFailure } from "../failure.ts";
import { given } from "../option-values.ts";

interface ReleaseCommandRun {
  config: MachineConfig;
  /** Seconds; undefined: the platform's default. */
  timeout: number | undefined;
}

/** Resolves when the command has succeeded. Otherwise rejects, and no machine has been changed. */
export async function runReleaseCommand(
  context: Context,
  { version }: Pick<Release, "version">,
  { config, timeout }: ReleaseCommandRun,
): Promise<void> {
  const client = await context.client();
  const words = (config.init?.cmd ?? []).join(" ");
  context.say(`Running release command: ${words}`);
  const nothing = "No machine was changed.";
  try {
    const { ok, reason } = await client.runReleaseCommand(context.app, version, config, {
      ...given({ timeout }),
      onLine: ({ stream, text }) => stream !== "platform" && context.say(`  ${text}`),
    });
    if (ok) return context.say("The release command succeeded.");
    throw new CliError(
      "failed_precondition",
      `The release command failed: ${reason}. ${nothing} Fix it and deploy again.`,
    );
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { error: code, message } = toFailure(error);
    throw new CliError(code, `The release command could not be run. ${message} ${nothing}`);
  }
}
