/** Reads the app file that a command uses. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { CliError, UsageError } from "../failure.ts";
import { APP_FILES, findAppFile } from "./find.ts";
import type { Reading } from "./read.ts";

/** Reads the named app file, or the one of the directory. The name is relative to the current directory. */
export async function readNamed(option: string | undefined): Promise<Reading & { name: string }> {
  const path = option ?? findAppFile(process.cwd());
  if (path === undefined)
    throw new UsageError(
      `This directory has no ${APP_FILES.join(" or ")}. Create one with \`hibernaut launch\`, or name one with --config.`,
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

/** The error that ends a command because of its app file. */
export function unusable(name: string, errors: number, warnings: number): CliError {
  const message =
    errors > 0
      ? `${name} has ${count(errors, "error")}. Fix the lines above.`
      : `${name} has ${count(warnings, "warning")}, and --strict allows none. Remove these keys, or leave out --strict.`;
  return new CliError("failed_precondition", message);
}

/** `1 error`, `2 errors` */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
