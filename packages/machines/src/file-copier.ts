/** What copies the files of machines: for a backup, or for a fork. */

/** What a machine is copied for. */
export interface CopyPurpose {
  /** For sentences: `a backup`. */
  name: string;
  /** What to do after a failure: `back up`. */
  verb: string;
}

/** Copies files of machines. */
export interface FileCopier {
  readonly purpose: CopyPurpose;
  /** Whether a copy of a running machine without its memory is of no use. */
  readonly needsMemory: boolean;
  /** Where the copy of a file of the data directory is put, as an absolute path. */
  pathOf(file: string): string;
  /** Copies a file without filling its holes. Rejects when aborted, once nothing writes to `to` any more. */
  copyFile(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** Whether a copy takes a moment and no room, whatever the file's size. */
  clones(): Promise<boolean>;
  /** Deletes what was copied of a machine. */
  discard(machineId: string): Promise<void>;
  /** The directory that copies are put into. */
  readonly folder: string;
}
