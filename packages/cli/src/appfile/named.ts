/** Reads the app file that a command uses. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { CliError, UsageError } from "../failure.ts";
import { APP_FILES, findAppFile } from "./find.ts";
import type { Reading } from "./read.ts";

/**
 * Reads the named app file, or the one of the directory. The name is relative to the current directory. With `complete`,
 * files that it names and that cannot be read are errors, too: a deploy may not need them, as with `--image`. `port` is
 * where the app listens if the file does not say it.
 */
export async function readNamed(
  option: string | undefined,
  { complete = false, port }: { complete?: boolean; port?: number | undefined } = {},
): Promise<Reading & { name: string; path: string }> {
  const path = option ?? findAppFile(process.cwd());
  if (path === undefined)
    throw new UsageError(
      `This directory has no ${APP_FILES.join(" or ")}. Create one with \`hibernaut launch\`, or name one with --config.`,
    );
  const { readAppFile } = await import("./read.ts");
  const missing = complete ? (file: string) => unreadable(resolve(dirname(path), file)) : undefined;
  return { path, name: option ?? relative(process.cwd(), path), ...readAppFile(textOf(path), missing, port) };
}

/** The code of the error with which a file cannot be read; undefined if it can. */
function unreadable(file: string): string | undefined {
  try {
    accessSync(file, constants.R_OK);
    return statSync(file).isDirectory() ? "EISDIR" : undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadableAppFile(path, (error as NodeJS.ErrnoException).code);
  }
}

function unreadableAppFile(path: string, code: string | undefined): CliError {
  const name = `--config ${join(path, APP_FILES[0])}`;
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return new CliError(
        "not_found",
        `There is no app file ${path}. Check the path, or create one with \`hibernaut launch\`.`,
      );
    case "EISDIR":
      return new CliError("invalid_argument", `${path} is a directory. Name the app file in it, as in ${name}.`);
    case "EACCES":
      return new CliError("permission_denied", `You may not read ${path}. Change its permissions.`);
    default:
      return new CliError("unavailable", `${path} cannot be read (${code}). Check the disk that it is on.`);
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
