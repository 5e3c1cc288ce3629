/** Credentials of a target, from the environment and from files: command lines appear in the process list. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../failure.ts";

/** The credentials of S3 as other programs have them, too. Undefined for one that is not set. */
export function s3Environment(): { accessKey: string | undefined; secretKey: string | undefined } {
  const { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey } = process.env;
  return { accessKey: accessKey || undefined, secretKey: secretKey || undefined };
}

/** Reads a file that an option names. Rejects with a usage error when it cannot be read. */
export async function namedFile(file: string): Promise<string> {
  const path = resolve(file);
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${path} cannot be read: ${error.message}.`);
  });
}
