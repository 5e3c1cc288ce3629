/** What a disk had where its guest has written since, in a file without a name that goes with the process. */
import { type FileHandle, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { freeBytes, SPARE_BYTES } from "@hibernaut/lib/disk-files";
import { NbdError, type NbdExport } from "./nbd.ts";

/** QEMU keeps this much at once, in bytes, where the place that it is written to says nothing else (block/block-copy.c). */
const CLUSTER_BYTES = 64 * 1024;
/** After this many bytes, it is looked again whether the disk has room for more. */
const LOOK_BYTES = 16 * 1024 * 1024;
const NOTHING = Buffer.alloc(CLUSTER_BYTES);
/** Errors as Linux numbers them. */
const [EINVAL, ENOSPC] = [22, 28];
/** What is known of a cluster: nothing, that it is in the file, or that it had only zeros. */
const [AS_IT_IS, SAVED, ZEROS] = [0, 1, 2];

/** The room on the disk of a directory, for all disks that are kept together. */
export class Room {
  readonly #folder: string;
  #unlooked = LOOK_BYTES;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Rejects with ENOSPC while the disk has only what guests and the database may need. */
  async require(bytes: number): Promise<void> {
    this.#unlooked += bytes;
    if (this.#unlooked < LOOK_BYTES) return;
    if ((await freeBytes(this.#folder)) < SPARE_BYTES + bytes) throw new NbdError(ENOSPC, "the disk is full");
    this.#unlooked = 0;
  }
}

/** The blocks of one disk. */
export class SavedBlocks implements NbdExport {
  readonly bytes: number;
  readonly #file: FileHandle;
  readonly #room: Room;
  /** As many as the disk has, whatever a QEMU sends that a guest has taken over. */
  readonly #clusters: Uint8Array;

  private constructor(file: FileHandle, room: Room, bytes: number) {
    this.#file = file;
    this.#room = room;
    this.bytes = bytes;
    this.#clusters = new Uint8Array(Math.ceil(bytes / CLUSTER_BYTES));
  }

  /** `path` is used for a moment. `bytes` is the size of the disk. */
  static async open(path: string, bytes: number, room = new Room(dirname(path))): Promise<SavedBlocks> {
    await rm(path, { force: true });
    const file = await open(path, "wx+", 0o600);
    await rm(path);
    return new SavedBlocks(file, room, bytes);
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const content = Buffer.alloc(length);
    await this.#file.read(content, 0, length, offset);
    return content;
  }

  /** Rejects while the disk has only what guests and the database may need. */
  async write(offset: number, content: Buffer): Promise<void> {
    await this.#room.require(content.length);
    await writeAll(this.#file, content, offset);
    this.#mark(offset, content.length, SAVED);
  }

  async zero(offset: number, length: number): Promise<void> {
    this.#mark(offset, length, ZEROS);
  }

  /** Puts them into a copy of the disk that was made since, whose holes stay. Rejects when the disk is full, and with the signal's reason. */
  async putInto(path: string, signal: AbortSignal): Promise<void> {
    await using copy = await open(path, "r+");
    const room = new Room(dirname(path));
    const there = Buffer.alloc(CLUSTER_BYTES);
    for (const [index, state] of this.#clusters.entries()) {
      if (state === AS_IT_IS) continue;
      signal.throwIfAborted();
      const from = index * CLUSTER_BYTES;
      const length = Math.min(CLUSTER_BYTES, this.bytes - from);
      if (state === ZEROS) {
        // A guest that gives up free space has all of it counted as zeros: written out, they would fill the disk.
        const { bytesRead } = await copy.read(there, 0, length, from);
        if (bytesRead === length && there.subarray(0, length).equals(NOTHING.subarray(0, length))) continue;
      }
      await room.require(length);
      await writeAll(copy, state === ZEROS ? NOTHING.subarray(0, length) : await this.read(from, length), from);
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #mark(offset: number, length: number, state: number): void {
    const end = offset + length;
    const whole = offset % CLUSTER_BYTES === 0 && (end % CLUSTER_BYTES === 0 || end === this.bytes);
    if (!whole) throw new NbdError(EINVAL, "a part of a cluster cannot be put back");
    this.#clusters.fill(state, offset / CLUSTER_BYTES, Math.ceil(end / CLUSTER_BYTES));
  }
}

async function writeAll(file: FileHandle, content: Buffer, position: number): Promise<void> {
  for (let at = 0; at < content.length; )
    at += (await file.write(content, at, content.length - at, position + at)).bytesWritten;
}
