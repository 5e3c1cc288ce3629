/** Which app is being made of a backup, on the disk: what a platform that is killed leaves of it is removed by the next one. */
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { RESTIC_FOLDER } from "../targets/cache.ts";

/** An app that is not whole, or not to stay. */
export interface Unfinished {
  app: string;
  /** When it was created, RFC 3339: one of another time is another app. */
  createdAt: string;
}

/** Next to what restic keeps, which backups do not contain: a restored platform has nothing unfinished. */
function fileIn(dataDir: string): string {
  return join(dataDir, RESTIC_FOLDER, "unfinished-app.json");
}

export async function noteUnfinished(dataDir: string, unfinished: Unfinished): Promise<void> {
  const file = fileIn(dataDir);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, `${JSON.stringify(unfinished)}\n`, { mode: 0o600 });
}

export async function forgetUnfinished(dataDir: string): Promise<void> {
  await rm(fileIn(dataDir), { force: true });
}

/** Returns the app. Undefined when there is none. */
export async function readUnfinished(dataDir: string): Promise<Unfinished | undefined> {
  const text = await readFile(fileIn(dataDir), "utf8").catch(ifAbsent(undefined));
  return text === undefined ? undefined : (JSON.parse(text) as Unfinished);
}
