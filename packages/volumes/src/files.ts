/**
 * The files of volumes. A file under its final name is whole; one that is being made has another name next to it.
 *
 *   <data directory>/volumes/<volume id>/data.ext4                    the disk, sparse
 *   <data directory>/volumes/<volume id>/snapshots/<snapshot id>.ext4
 */
import { mkdir, readdir, rename, rm, stat, truncate } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { never, within } from "@hibernaut/lib/async";
import {
  allocatedBytes,
  canCloneIn,
  cloneFile,
  copySparseUntilAborted,
  createSparse,
  formatExt4,
} from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import { failureReason } from "@hibernaut/lib/exec";

const GB = 1024 ** 3;
/** An empty file system in a sparse file takes milliseconds; on a full disk, or with a broken tool, it never ends. */
const FORMAT_TIMEOUT_MS = 60_000;
/** A copy of 100 GB takes minutes on a slow disk. */
const COPY_TIMEOUT_MS = 30 * 60_000;
const DRAFT = ".new";

/** The files of all volumes of a data directory. What cannot be written rejects with `unavailable`. */
export class VolumeFiles {
  readonly root: string;
  #canClone: Promise<boolean> | undefined;

  constructor(dataDir: string) {
    this.root = join(dataDir, "volumes");
  }

  /** The directory of a volume's disk and its snapshots. */
  folder(volumeId: string): string {
    return join(this.root, volumeId);
  }

  /** The path of a volume's disk. */
  disk(volumeId: string): string {
    return join(this.root, volumeId, "data.ext4");
  }

  /** Path of a volume snapshot. */
  snapshot(volumeId: string, snapshotId: string): string {
    return join(this.root, volumeId, "snapshots", `${snapshotId}.ext4`);
  }

  /** Names of all directories, including those of volumes that a restored database does not know. */
  folders(): Promise<string[]> {
    return readdir(this.root).catch(ifAbsent<string[]>([]));
  }

  /** Makes a disk with an empty file system. */
  async make(volumeId: string, sizeGb: number): Promise<void> {
    await this.#publish(this.disk(volumeId), async (draft) => {
      await createSparse(draft, sizeGb * GB);
      await this.format(draft);
    });
  }

  /** Copies a file that nothing writes to; its holes stay holes. When aborted, nothing is left. */
  async copy(from: string, to: string, signal?: AbortSignal): Promise<void> {
    const limit = within(signal ?? never(), COPY_TIMEOUT_MS, "the copy");
    await this.#publish(to, (draft) => copySparseUntilAborted(from, draft, limit));
  }

  /** Moves a whole disk, which is durable and on the same file system, to its place. */
  async adopt(disk: string, volumeId: string): Promise<void> {
    await this.#publish(this.disk(volumeId), (draft) => rename(disk, draft));
  }

  /** Copies a file in a moment, whatever its size. Rejects where the file system cannot clone. */
  async clone(from: string, to: string): Promise<void> {
    await this.#publish(to, (draft) => cloneFile(from, draft));
  }

  /** Whether the file system can clone files: btrfs and XFS can, ext4 cannot. */
  canClone(): Promise<boolean> {
    this.#canClone ??= canCloneIn(this.root);
    return this.#canClone;
  }

  /** Grows a disk to its volume's size. A disk is never made smaller. */
  async grow(volumeId: string, sizeGb: number): Promise<void> {
    const disk = this.disk(volumeId);
    if ((await stat(disk)).size >= sizeGb * GB) return;
    await truncate(disk, sizeGb * GB);
    await flush(disk);
  }

  /** What a file looks like to the host. It stays the same exactly as long as nothing writes to the file. */
  async stamp(path: string): Promise<string> {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(":");
  }

  /** The space that a file takes up on the disk, in bytes. */
  async sizeBytes(path: string): Promise<number> {
    return allocatedBytes(await stat(path));
  }

  /** Deletes a volume's disk and snapshots. Safe to repeat. */
  async remove(volumeId: string): Promise<void> {
    await rm(join(this.root, volumeId), { recursive: true, force: true });
  }

  /** Deletes a volume snapshot, whole or half made. Safe to repeat. */
  async removeSnapshot(volumeId: string, snapshotId: string): Promise<void> {
    const path = this.snapshot(volumeId, snapshotId);
    await Promise.all([path, path + DRAFT].map((file) => rm(file, { force: true })));
  }

  /** Makes a file system in a file of the right size. Tests replace this step. */
  protected async format(path: string): Promise<void> {
    await formatExt4(path, { timeoutMs: FORMAT_TIMEOUT_MS });
  }

  /** Writes a file that is whole and durable as soon as it has its name. */
  async #publish(path: string, write: (draft: string) => Promise<void>): Promise<void> {
    const draft = path + DRAFT;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await rm(draft, { force: true });
      await write(draft);
      await flush(draft);
      await rename(draft, path);
      for (let folder = dirname(path); folder.startsWith(this.root); folder = dirname(folder)) await flush(folder);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => {});
      throw new HibernautError(
        "unavailable",
        `The disk of a volume cannot be written: ${failureReason(error)}. Run \`hibernaut doctor\`.`,
      );
    }
  }
}
