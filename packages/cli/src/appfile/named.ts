/** The app file that a command means. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { CliError, UsageError } from "../failure.ts";
import { APP_FILES, findAppFile } from "./find.ts";
import type { Reading } from "./read.ts";

/** The app file that is meant, read. The name is as short as it can be said from here. */
export async function readNamed(option: string | undefined): Promise<Reading & { name: string }> {
  const path = option ?? findAppFile(process.cwd());
  if (path === undefined)
    throw new UsageError(
      `There is no ${APP_FILES.join(" and no ")} in this folder. Make one with \`hibernaut launch\`, or name one with --config.`,
    );
  const { readAppFile } = await import("./read.ts");
  return { name: option ?? relative(process.cwd(), path), ...readAppFile(textOf(path)) };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CliError("not_found", `${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Why a command does not go on with this file. */
export function refusal(name: string, errors: number, warnings: number): CliError {
  const message =
    errors > 0
      ? `${name} has ${count(errors, "error")}. Correct the lines above.`
      : `${name} has ${count(warnings, "warning")}, and --strict allows none. Remove these keys, or leave --strict out.`;
  return new CliError("failed_precondition", message);
}

/** `1 error`, `2 errors` */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
