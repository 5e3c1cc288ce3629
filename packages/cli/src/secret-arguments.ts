/** Reads `NAME=value` words. No message repeats a word: without its `=`, it may be a secret itself. */
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { UsageError } from "./failure.ts";

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
    if (at < 1) throw new UsageError("A secret is set as NAME=value, NAME=- or NAME=@file. One of these has no name.");
    const name = word.slice(0, at);
    if (values.has(name)) throw new UsageError(`${name} is named twice.`);
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

async function read(name: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    // Not the path: the value of a secret may begin with @.
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `The file for ${name} cannot be read (${code}). A value that begins with @ goes through standard input: ${name}=-.`,
    );
  }
}

function textOf(name: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch {
    throw new UsageError(`The value for ${name} is no UTF-8 text. Encode it first, e.g. with base64.`);
  }
}
