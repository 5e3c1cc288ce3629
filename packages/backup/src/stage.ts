/** Where a backup puts copies before they are sent: a directory in the data directory that is laid out like it. */
import { link, mkdir, readdir, rm, stat, symlink, utimes } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { type CopyHaste, canCloneIn, copySparseUntilAborted } from "@hibernaut/lib/disk-files";
import type { FileCopier } from "@hibernaut/machines";

/** A name that nobody would give to a directory of their own: it is deleted without a question. */
const STAGE = "tmp-backup";
/** Directories of the data directory that only its owner may enter. */
const FOLDERS = ["machines", "volumes", "bundles", "images", "templates", "certificates"];

/** The directory of one data directory. There is one backup at a time. */
export class Stage implements FileCopier {
  readonly purpose = { name: "a backup", verb: "back up" };
  /** Its disks are worth keeping without it. */
  readonly needsMemory = false;
  readonly folder: string;
  readonly #dataDir: string;
  #clones: Promise<boolean> | undefined;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.folder = join(dataDir, STAGE);
  }

  /** Empties the directory. Returns the paths in it that exist now, below which everything else is put. */
  async open(): Promise<string[]> {
    await this.remove();
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const name of FOLDERS) await mkdir(join(this.folder, name), { mode: 0o700 });
    this.#clones = undefined;
    return FOLDERS;
  }

  /** Deletes the directory: after a backup, and what a platform that was killed left. Safe to repeat. */
  async remove(): Promise<void> {
    // A `cp` that outlived its platform may still be writing.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Deletes what was put at paths that are relative to the directory. */
  async drop(paths: readonly string[]): Promise<void> {
    for (const path of paths) await rm(join(this.folder, path), { recursive: true, force: true });
  }

  pathOf(file: string): string {
    return join(this.folder, relative(this.#dataDir, file));
  }

  async copyFile(from: string, to: string, signal: AbortSignal, haste?: CopyHaste): Promise<void> {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copySparseUntilAborted(from, to, signal, haste);
  }

  clones(): Promise<boolean> {
    this.#clones ??= canCloneIn(this.folder);
    return this.#clones;
  }

  /** The same, except that files of machines that rest are lent, by symbolic links: nothing is copied, and no room is needed. */
  get lending(): Required<FileCopier> {
    const { purpose, needsMemory, folder } = this;
    return {
      ...{ purpose, needsMemory, folder },
      pathOf: (file) => this.pathOf(file),
      copyFile: (from, to, signal, haste) => this.copyFile(from, to, signal, haste),
      clones: () => this.clones(),
      discard: (machineId) => this.discard(machineId),
      // A second name would change the file's time, by which seals and stamps know that nobody touched it.
      lend: async (file) => {
        const to = this.pathOf(file);
        await mkdir(dirname(to), { recursive: true, mode: 0o700 });
        await symlink(file, to);
      },
    };
  }

  async discard(machineId: string): Promise<void> {
    // One machine is copied at a time: whatever is there of volumes was begun for it, perhaps of one that it has no longer.
    const volumes = await readdir(join(this.folder, "volumes")).catch(ifAbsent<string[]>([]));
    await this.drop([join("machines", machineId), ...volumes.map((volume) => join("volumes", volume))]);
  }

  /** Puts a file that never changes into the stage. False when it is gone. */
  async link(file: string, signal: AbortSignal): Promise<boolean> {
    const to = this.pathOf(file);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    try {
      await link(file, to);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return false;
      // It is on a disk of its own.
      if (code !== "EXDEV") throw error;
      await copySparseUntilAborted(file, to, signal);
      // Whether a file was written again is told by its time.
      const { atime, mtime } = await stat(file);
      await utimes(to, atime, mtime);
      return true;
    }
  }

  /** Puts all files of a directory into the stage, which never change. False when one of them is gone. */
  async linkAll(folder: string, signal: AbortSignal): Promise<boolean> {
    const entries = await readdir(folder, { withFileTypes: true }).catch(ifAbsent(undefined));
    if (entries === undefined) return false;
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (!(await (entry.isDirectory() ? this.linkAll(path, signal) : this.link(path, signal)))) return false;
    }
    return true;
  }
}
