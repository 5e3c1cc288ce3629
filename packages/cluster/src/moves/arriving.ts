/** What is on its way to this host: machines that are put together, each in a directory with its papers once it is whole. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import type { TravelPapers } from "./papers.ts";

/** Has the papers of a machine that has arrived as a whole. */
export const PAPERS_FILE = "papers.json";

/** Returns where machines are put together. */
export function arrivalsFolder(dataDir: string): string {
  return join(dataDir, "incoming");
}

/** Reads the papers of the machine in a directory. Undefined before it is whole. */
export async function readPapers(folder: string): Promise<TravelPapers | undefined> {
  const text = await readFile(join(folder, PAPERS_FILE), "utf8").catch(ifAbsent(undefined));
  return text === undefined ? undefined : (JSON.parse(text) as TravelPapers);
}

/** The ids of volumes that have arrived with machines that are not taken in yet: their files may be in place already. */
export async function arrivingVolumes(dataDir: string): Promise<Set<string>> {
  const folder = arrivalsFolder(dataDir);
  const names = await readdir(folder).catch(ifAbsent<string[]>([]));
  const papers = await Promise.all(names.map((name) => readPapers(join(folder, name))));
  return new Set(papers.flatMap((one) => one?.volumes ?? []).map(({ volume }) => volume.id));
}
