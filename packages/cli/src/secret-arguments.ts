/** Reads `NAME=value` words. Messages never repeat a word: without its `=`, it may be a secret. */
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { parseEnv } from "node:util";
import { UsageError } from "./failure.ts";

const FORMS = "Set a secret as NAME=value, NAME=- (standard input) or NAME=@file.";

/**
 * `NAME=-` takes standard input and `NAME=@file` a file, each as UTF-8 without one newline at the end, which editors
 * and `echo` put there and no secret has.
 */
export async function readSecrets(
  words: readonly string[],
  input: AsyncIterable<unknown> & NodeJS.ReadableStream = process.stdin,
): Promise<{ values: Record<string, string>; usedStdin: boolean }> {
  const values = new Map<string, string>();
  let usedStdin = false;
  for (const word of words) {
    const at = word.indexOf("=");
    if (at < 1)
      throw new UsageError(
        `${FORMS} ${at < 0 ? "One argument has no value: there is no = in it." : "One argument has no name."}`,
      );
    const name = word.slice(0, at);
    if (values.has(name)) throw new UsageError(`${name} is given twice.`);
    const value = word.slice(at + 1);
    if (value === "-") {
      if (usedStdin) throw new UsageError("Only one secret can come from standard input.");
      usedStdin = true;
      values.set(name, textOf(name, await buffer(input)));
    } else {
      values.set(name, value.startsWith("@") ? textOf(name, await read(name, value.slice(1))) : value);
    }
  }
  return { values: Object.fromEntries(values), usedStdin };
}

/** Where a line of a .env file begins a variable. */
const ASSIGNMENT = /^\s*(?:export\s+)?[\w.-]+\s*=\s*(.*)$/;

/** The variables of a .env file. Messages name lines, never their content. */
export function parseSecrets(text: string): Record<string, string> {
  let quote: string | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (quote !== undefined) {
      if (line.includes(quote)) quote = undefined;
      continue;
    }
    if (/^\s*(?:#.*)?$/.test(line)) continue;
    const [, value] = ASSIGNMENT.exec(line) ?? [];
    if (value === undefined) throw new UsageError(`Line ${index + 1} is not NAME=value. Nothing was changed.`);
    // A quoted value may span several lines.
    const [, opened, rest = ""] = /^(["'`])(.*)$/.exec(value) ?? [];
    if (opened !== undefined && !rest.includes(opened)) quote = opened;
  }
  const values = parseEnv(text) as Record<string, string>;
  if (Object.keys(values).length > 0) return values;
  throw new UsageError("Standard input contains no NAME=value. Nothing was changed.");
}

async function read(name: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    // Not the path: the value of a secret may begin with @.
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `The file for ${name} cannot be read (${code}). To set a value that begins with @, pass it on standard input: ${name}=-.`,
    );
  }
}

export function textOf(name: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch {
    throw new UsageError(`The value for ${name} is not valid UTF-8. Encode it first, for example with base64.`);
  }
}
