/** Where the builds of a directory are: their layers, their log, and what they are made in. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { ifAbsent, ifEnded } from "@hibernaut/lib/absence";
import { appName } from "../appfile/plan.ts";
import { CliError } from "../failure.ts";
import type { Layer } from "./layer.ts";
import { blobsOf } from "./layout.ts";

/** Layers that are found again by what they were made from: as many as images are kept. */
const CACHED = 5;

/** The place of one directory. Only one build at a time has it. */
export interface Place extends AsyncDisposable {
  layout: string;
  blobs: string;
  /** Bases of all directories. */
  bases: string;
  /** Empty, and removed at the end. */
  work: string;
  log: string;
  /** The layers that were made from the same things, if they are still there; otherwise, or if `fresh`, makes them. */
  layersFor(key: string, fresh: boolean, make: () => Promise<Layer[]>): Promise<Layer[]>;
}

/** Refuses a directory for builds that no image in it could be named by. */
export function requireNoColon(builds: string): void {
  if (!builds.includes(":")) return;
  throw new CliError(
    "invalid_argument",
    `The directory for builds, ${builds}, has a colon in its path, which references of images cannot express. Set HIBERNAUT_BUILD_DIR to another one.`,
  );
}

/** `HIBERNAUT_BUILD_DIR`, or a directory for things that can be made again. */
export function buildFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const { HIBERNAUT_BUILD_DIR: own, XDG_CACHE_HOME: cache, HOME: home } = environment;
  return own || join(cache || join(home || homedir(), ".cache"), "hibernaut/builds");
}

/** The name of a directory's place: readable, and different for each directory. */
export function placeName(folder: string): string {
  return `${appName(basename(folder))}-${createHash("sha256").update(folder).digest("hex").slice(0, 8)}`;
}

/** Opens the place of a directory. Rejects with `failed_precondition` while another build has it. */
export async function openPlace(folder: string, builds: string): Promise<Place> {
  requireNoColon(builds);
  const home = join(builds, placeName(folder));
  await mkdir(home, { recursive: true });
  const lock = join(home, "lock");
  await takeLock(lock, folder);
  const layout = join(home, "layout");
  const work = join(home, "work");
  const log = join(home, "build.log");
  await rm(work, { recursive: true, force: true });
  await mkdir(work);
  await writeFile(log, "");
  const memory = join(home, "cache.json");
  const read = async (): Promise<{ key: string; layers: Layer[] }[]> =>
    existsSync(memory) ? (JSON.parse(await readFile(memory, "utf8")) as never) : [];
  return {
    layout,
    blobs: blobsOf(layout),
    bases: join(builds, "bases"),
    work,
    log,
    async layersFor(key, fresh, make) {
      const known = (await read()).find((one) => one.key === key)?.layers;
      const isThere = ({ digest }: Layer) => existsSync(join(blobsOf(layout), digest.slice("sha256:".length)));
      if (!fresh && known?.every(isThere)) return known;
      const layers = await make();
      const others = (await read()).filter((one) => one.key !== key);
      await writeFile(memory, JSON.stringify([{ key, layers }, ...others].slice(0, CACHED)));
      return layers;
    },
    async [Symbol.asyncDispose]() {
      await rm(work, { recursive: true, force: true });
      await rm(lock, { force: true });
    },
  };
}

/** The lock names its process: one that is gone holds nothing. */
async function takeLock(lock: string, folder: string): Promise<void> {
  const own = `${process.pid} ${await startOf(process.pid)}`;
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      await writeFile(lock, own, { flag: "wx" });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = await readFile(lock, "utf8").catch(ifAbsent(""));
    const [pid, start] = holder.split(" ");
    if (pid && (await startOf(Number(pid))) === start)
      throw new CliError(
        "failed_precondition",
        `Process ${pid} is building ${folder} now. Wait until it has ended, and deploy again.`,
      );
    await rm(lock, { force: true });
  }
  throw new CliError(
    "failed_precondition",
    `Another build of ${folder} has just begun. Wait until it has ended, and deploy again.`,
  );
}

/** When a process started, in clock ticks: a recycled PID is another process. Undefined when it is gone. */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(ifEnded(""));
  // The name of the program, in parentheses, may hold anything.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
