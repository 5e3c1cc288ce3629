/** What hosts tell each other about a machine that moves, and where its papers wait until it is taken in. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { MachineEvent } from "@hibernaut/domain/machine";
import { ifAbsent } from "@hibernaut/lib/absence";
import type { Papers } from "@hibernaut/machines";
import type { VolumePapers } from "@hibernaut/volumes";

/** The papers of a machine that travels. */
export interface TravelPapers extends Papers {
  from: string;
  epoch: number;
  /** Of the {@link MoveRecord}. */
  attempt: string;
  history: MachineEvent[];
  volumes: VolumePapers[];
}

/** What the other host is asked before anything is copied. */
export interface FitPapers extends Papers {
  volumes: VolumePapers[];
}

/** Why a machine cannot go there, or its volumes cannot. Nothing when they can. */
export interface Fit {
  unfit?: string;
  unfitVolumes?: string;
}

/** Has the papers of a machine that has arrived as a whole. */
export const PAPERS_FILE = "papers.json";

/** Returns where machines are put together, each in a directory of its own. */
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
