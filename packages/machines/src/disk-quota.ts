/** What each app takes of the disk, and whether it may take more. */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { guestSize, type MachineConfig, swapMbOf } from "@hibernaut/domain/config";
import { ifAbsent } from "@hibernaut/lib/absence";
import { refusedGrowth } from "./decide/disk-quota.ts";

const MB = 1024 * 1024;
/** What `st_blocks` counts. */
const BLOCK_BYTES = 512;

interface DiskQuotaOptions {
  /** What each app may take; 0 for no limit. */
  quotaMb: number;
  /** The directories of an app's machines and volumes. */
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

/** Returns the space that files and directories take on the disk, in bytes. A file with several names counts once. */
export function takenBytes(paths: readonly string[]): number {
  const seen = new Set<number>();
  const taken = (path: string): number => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || seen.has(found.ino)) return 0;
    seen.add(found.ino);
    const own = found.blocks * BLOCK_BYTES;
    if (!found.isDirectory()) return own;
    return namesIn(path).reduce((sum, name) => sum + taken(join(path, name)), own);
  };
  return paths.reduce((sum, path) => sum + taken(path), 0);
}

/** None, if the directory has just been removed. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    return ifAbsent<string[]>([])(error);
  }
}
