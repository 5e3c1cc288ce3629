/**
 * Which backup to a target runs, on the disk: what a platform that is killed leaves, and what the next one tells of. It is not a part of
 * backups: in each, one would be under way.
 */
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";

/** The name of the file in the directory of the cache. */
export const BEGAN_FILE = "running.json";

/** A backup that began. */
interface Began {
  target: string;
  /** RFC 3339. */
  at: string;
}

/** Stores that a backup began. */
export async function noteBegan(file: string, began: Began): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, `${JSON.stringify(began)}\n`, { mode: 0o600 });
}

/** Stores that it ended. */
export async function noteEnded(file: string): Promise<void> {
  await rm(file, { force: true });
}

/** Returns the backup that did not end. Undefined without one. */
export async function readBegan(file: string): Promise<Began | undefined> {
  const text = await readFile(file, "utf8").catch(ifAbsent(undefined));
  if (text === undefined) return undefined;
  try {
    const { target, at } = JSON.parse(text) as Partial<Began>;
    return typeof target === "string" && typeof at === "string" ? { target, at } : undefined;
  } catch {
    return undefined; // written by nobody we know
  }
}
