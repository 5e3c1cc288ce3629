/** What is being made of a backup, on the disk: what a platform that is killed leaves of it is removed by the next one. */
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { RESTIC_FOLDER } from "../targets/cache.ts";

/** An app that is not whole, or not to stay; with `volumes`, only a part of an app that is to stay. */
export interface Unfinished {
  app: string;
  /** When the app was created, RFC 3339: one of another time is another app. Null for a name that nobody else would choose. */
  createdAt: string | null;
  /** Since when machines of the app that come from a backup are of this restore, RFC 3339, and the ids of its volumes. */
  parts?: { since: string; volumes: readonly string[] };
}

/** Next to what restic keeps, which backups do not contain: a restored platform has nothing unfinished. */
function fileIn(dataDir: string): string {
  return join(dataDir, RESTIC_FOLDER, "unfinished-apps.json");
}

/** Adds to what is unfinished; a later note about an app takes the place of an earlier one. */
export async function noteUnfinished(dataDir: string, unfinished: Unfinished): Promise<void> {
  const others = (await readUnfinished(dataDir)).filter(({ app }) => app !== unfinished.app);
  await write(dataDir, [...others, unfinished]);
}

export async function forgetUnfinished(dataDir: string, app: string): Promise<void> {
  const all = await readUnfinished(dataDir);
  const others = all.filter((one) => one.app !== app);
  if (others.length === 0) await rm(fileIn(dataDir), { force: true });
  else if (others.length < all.length) await write(dataDir, others);
}

/** Returns all that is unfinished, oldest first. */
export async function readUnfinished(dataDir: string): Promise<Unfinished[]> {
  const text = await readFile(fileIn(dataDir), "utf8").catch(ifAbsent(undefined));
  return text === undefined ? [] : (JSON.parse(text) as Unfinished[]);
}

async function write(dataDir: string, all: readonly Unfinished[]): Promise<void> {
  const file = fileIn(dataDir);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, `${JSON.stringify(all)}\n`, { mode: 0o600 });
}
