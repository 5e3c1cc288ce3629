/** What each app takes of the disk, and whether it may take more. */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { guestSize, type MachineConfig, swapMbOf } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { ifAbsent } from "@hibernaut/lib/absence";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { imagesOf } from "./in-use.ts";

const MB = 1024 * 1024;

interface DiskQuotaOptions {
  /** What each app may take; 0 for no limit. */
  quotaMb: number;
  /** The directories of an app's machines, templates and volumes. */
  foldersOf(app: string): string[];
}

export class DiskQuota {
  readonly #options: DiskQuotaOptions;

  constructor(options: DiskQuotaOptions) {
    this.#options = options;
  }

  /**
   * Throws `failed_precondition` if the app would take more than its quota with `growth` bytes more. Synchronous, so that
   * nothing comes between the check and what follows; without a quota, nothing is read.
   */
  require(app: string, growth: number): void {
    const { quotaMb, foldersOf } = this.#options;
    if (quotaMb === 0) return;
    const refusal = refusedGrowth({ app, used: takenBytes(foldersOf(app)), growth }, quotaMb);
    if (refusal !== undefined) throw refusal;
  }

  /**
   * The same for a cold start, which reserves the whole memory. `memory` is the file that it replaces, if there is one.
   */
  requireForStart(app: string, config: MachineConfig, memory: string): void {
    if (this.#options.quotaMb === 0) return;
    const needed = (guestSize(config).memoryMb + swapMbOf(config)) * MB;
    this.require(app, Math.max(0, needed - takenBytes([memory])));
  }
}

/** An app's disk, in bytes. */
interface DiskUse {
  app: string;
  /** What its machines, templates, volumes and volume snapshots take now. */
  used: number;
  /** What it asks for. */
  growth: number;
}

/** Says why an app may not take more; undefined when it may. 0: there is no quota. Pure. */
export function refusedGrowth({ app, used, growth }: DiskUse, quotaMb: number): HibernautError | undefined {
  if (quotaMb === 0 || used + growth <= quotaMb * MB) return undefined;
  const [usedMb, neededMb] = [Math.ceil(used / MB), Math.ceil(growth / MB)];
  const message =
    `App ${app} uses ${usedMb} MB of disk and asks for ${neededMb} MB more, and its quota is ${quotaMb} MB. ` +
    "Destroy machines, templates, volumes or volume snapshots that it does not need, ask for less, or have HIBERNAUT_DISK_QUOTA raised.";
  const details = { app_name: app, quota_mb: quotaMb, used_mb: usedMb, needed_mb: neededMb };
  return new HibernautError("failed_precondition", message, details);
}

/** Where things are on the disk. */
interface Folders {
  files: { paths(id: string): { folder: string }; seeds: { folder(id: string): string; cradle(id: string): string } };
  volumeFiles: { folder(id: string): string };
  imageFolder(digest: string): string;
}

type CountedMachine = Pick<MachineRecord, "id" | "imageDigest" | "pending">;

/** What an app has that takes disk. */
interface AppHoldings {
  machines: readonly CountedMachine[];
  templates: readonly { id: string; machine: CountedMachine }[];
  volumes: readonly { id: string }[];
}

/**
 * Returns the directories of an app's machines, templates and volumes, and of their images. An image that several apps use
 * counts for each of them: none takes less because another one came before.
 */
export function appFolders(
  { machines, templates, volumes }: AppHoldings,
  { files, volumeFiles, imageFolder }: Folders,
): string[] {
  return [
    ...machines.flatMap(({ id }) => [files.paths(id).folder, files.seeds.cradle(id)]),
    ...templates.map(({ id }) => files.seeds.folder(id)),
    ...volumes.map(({ id }) => volumeFiles.folder(id)),
    ...[...imagesOf([...machines, ...templates.map(({ machine }) => machine)])].map(imageFolder),
  ];
}

/**
 * Returns the space that files and directories take on the disk, in bytes. A file with several names in one of them counts once,
 * and in each that has it: a machine that has its memory from a template will need that space when it is suspended.
 */
export function takenBytes(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + takenIn(path), 0);
}

function takenIn(folder: string): number {
  const seen = new Set<number>();
  const taken = (path: string): number => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || seen.has(found.ino)) return 0;
    seen.add(found.ino);
    const own = allocatedBytes(found);
    if (!found.isDirectory()) return own;
    return namesIn(path).reduce((sum, name) => sum + taken(join(path, name)), own);
  };
  return taken(folder);
}

/** None, if the directory has just been removed. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    return ifAbsent<string[]>([])(error);
  }
}
