/**
 * The files of volumes. A file under its own name is whole; what is being made is beside it under another.
 *
 *   <data folder>/volumes/<volume id>/data.ext4                    the disk, sparse
 *   <data folder>/volumes/<volume id>/snapshots/<snapshot id>.ext4
 */
import { execFile } from "node:child_process";
import { constants, copyFile, mkdir, open, readdir, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { HibernautError } from "../domain/errors.ts";
import { programEnvironment } from "../lib/programs.ts";
import { messageOf } from "../lib/text.ts";

const run = promisify(execFile);
const GB = 1024 ** 3;
/** Making an empty file system in a sparse file takes milliseconds; a full disk or a broken tool takes for ever. */
const FORMAT_TIMEOUT_MS = 60_000;
/** A copy of 100 GB takes minutes on a slow disk. */
const COPY_TIMEOUT_MS = 30 * 60_000;
const DRAFT = ".new";

export class VolumeFiles {
  readonly root: string;
  #canClone: Promise<boolean> | undefined;

  constructor(dataDir: string) {
    this.root = join(dataDir, "volumes");
  }

  disk(volumeId: string): string {
    return join(this.root, volumeId, "data.ext4");
  }

  snapshot(volumeId: string, snapshotId: string): string {
    return join(this.root, volumeId, "snapshots", `${snapshotId}.ext4`);
  }

  /** Folders in which something was stored once; undefined volumes of a restored database among them. */
  folders(): Promise<string[]> {
    return readdir(this.root).catch(() => []);
  }

  /** An empty file system. */
  async make(volumeId: string, sizeGb: number): Promise<void> {
    await this.#publish(this.disk(volumeId), async (draft) => {
      await writeFile(draft, "", { mode: 0o600 });
      await truncate(draft, sizeGb * GB);
      await this.format(draft);
    });
  }

  /** A copy of a file that nobody writes to; its holes stay holes. */
  async copy(from: string, to: string): Promise<void> {
    await this.#publish(to, (draft) =>
      run("cp", ["--reflink=auto", "--sparse=always", "--", from, draft], { timeout: COPY_TIMEOUT_MS }),
    );
  }

  /** The same in a moment, whatever its size. Rejects where the file system cannot. */
  async clone(from: string, to: string): Promise<void> {
    await this.#publish(to, (draft) => copyFile(from, draft, constants.COPYFILE_FICLONE_FORCE));
  }

  /** Whether the file system below can clone files: btrfs and XFS can, ext4 cannot. */
  canClone(): Promise<boolean> {
    this.#canClone ??= this.#tryClone();
    return this.#canClone;
  }

  /** Gives the disk its size. It is never cut. */
  async grow(volumeId: string, sizeGb: number): Promise<void> {
    const disk = this.disk(volumeId);
    if ((await stat(disk)).size >= sizeGb * GB) return;
    await truncate(disk, sizeGb * GB);
    await sync(disk);
  }

  /** What a file takes on the disk. */
  async sizeBytes(path: string): Promise<number> {
    return (await stat(path)).blocks * 512;
  }

  /** The volume and its snapshots. */
  async remove(volumeId: string): Promise<void> {
    await rm(join(this.root, volumeId), { recursive: true, force: true });
  }

  async removeSnapshot(volumeId: string, snapshotId: string): Promise<void> {
    const path = this.snapshot(volumeId, snapshotId);
    await Promise.all([path, path + DRAFT].map((file) => rm(file, { force: true })));
  }

  /** Makes a file system in a file of the right size. No blocks are kept for root: a volume is not a system's disk. */
  protected async format(path: string): Promise<void> {
    await run("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", path], {
      timeout: FORMAT_TIMEOUT_MS,
      env: programEnvironment(),
    });
  }

  /** A file that is durable and whole as soon as it has its name. */
  async #publish(path: string, write: (draft: string) => Promise<unknown>): Promise<void> {
    const draft = path + DRAFT;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await rm(draft, { force: true });
      await write(draft);
      await sync(draft);
      await rename(draft, path);
      for (let folder = dirname(path); folder.startsWith(this.root); folder = dirname(folder)) await sync(folder);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      const { stderr = "" } = error as { stderr?: string };
      const why = stderr.trim() || messageOf(error);
      throw new HibernautError(
        "unavailable",
        `The disk of a volume cannot be written: ${why}. See \`hibernaut doctor\`.`,
      );
    }
  }

  async #tryClone(): Promise<boolean> {
    const probe = join(this.root, `.probe-${process.pid}`);
    try {
      await mkdir(this.root, { recursive: true, mode: 0o700 });
      await writeFile(probe, "x");
      await copyFile(probe, `${probe}.clone`, constants.COPYFILE_FICLONE_FORCE);
      return true;
    } catch {
      return false;
    } finally {
      await Promise.all([probe, `${probe}.clone`].map((path) => rm(path, { force: true })));
    }
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
