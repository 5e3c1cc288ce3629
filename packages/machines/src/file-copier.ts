/** What copies the files of machines: for a backup, or for a fork. */
import type { CopyHaste } from "@hibernaut/lib/disk-files";

/** What a machine is copied for. */
export interface CopyPurpose {
  /** For sentences: `a backup`. */
  name: string;
  /** What to do after a failure: `back up`. */
  verb: string;
}

/** Files of a machine that rests, as they are, in place of copies. */
export interface Lent {
  /** Aborted once they may have changed: what was read of them until then is whole or not, and has to be read again. */
  readonly changed: AbortController;
  /** Call it when they are no longer needed. */
  release(): void;
}

/** Copies files of machines. */
export interface FileCopier {
  readonly purpose: CopyPurpose;
  /** Whether a copy of a running machine without its memory is of no use. */
  readonly needsMemory: boolean;
  /** Where the copy of a file of the data directory is put, as an absolute path. */
  pathOf(file: string): string;
  /** Copies a file without filling its holes. Rejects when aborted, once nothing writes to `to` any more. */
  copyFile(from: string, to: string, signal: AbortSignal, haste?: CopyHaste): Promise<void>;
  /** Whether a copy takes a moment and no room, whatever the file's size. */
  clones(): Promise<boolean>;
  /**
   * Has a file that nobody writes to now in the place of its copy: what is read there is whole only as long as nobody does. Absent
   * where that is of no use.
   */
  lend?(file: string, signal: AbortSignal): Promise<void>;
  /** Deletes what was copied, or lent, of a machine, and of its volumes. */
  discard(machineId: string): Promise<void>;
  /** The directory that copies are put into. */
  readonly folder: string;
}
