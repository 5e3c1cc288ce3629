/** The memory of a machine that arrives: first while its guest still runs on the other host, then what has changed since. */
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FRAMES, type Frame } from "./frames.ts";
import { PIECE_BYTES, PieceSums, runsIn } from "./memory-pieces.ts";

/** What the other host says of a memory that it has sent as a whole. */
export interface SentMemory {
  bytes: number;
  /** Of {@link PieceSums.total}. */
  sum: string;
}

/** Why a memory is not taken. */
interface MemoryRefusal {
  notStored(error: Error): Error;
  notWhole(what: string): Error;
}

export class ArrivingMemory implements AsyncDisposable {
  readonly #folder: string;
  readonly #refusal: MemoryRefusal;
  readonly #sums = new PieceSums();
  #file: FileHandle | undefined;
  /** Of what was written before. The disk works while the rest arrives, so that little is left for the end. */
  #flushing: Promise<void> | undefined;
  #failure: Error | undefined;

  /** `folder` is made when the first piece arrives, and is deleted in the end. `refusal` makes the errors. */
  constructor(folder: string, refusal: MemoryRefusal) {
    this.#folder = folder;
    this.#refusal = refusal;
  }

  /** Takes frames with pieces of memory. Resolves with the first other frame. */
  async takeFrom(frames: AsyncIterator<Frame, void>): Promise<IteratorResult<Frame, void>> {
    for (;;) {
      const next = await frames.next();
      if (next.done === true || next.value.type !== FRAMES.memory) return next;
      await this.#write(next.value.payload).catch((error: Error) => {
        throw this.#refusal.notStored(error);
      });
    }
  }

  /** Moves the whole memory to its place, durably except for the entry in its directory. Rejects when it is not what was sent. */
  async place({ bytes, sum }: SentMemory, path: string): Promise<void> {
    if (this.#sums.total(bytes) !== sum) throw this.#refusal.notWhole("its memory is not what was sent");
    await this.#store(bytes, path).catch((error: Error) => {
      throw this.#refusal.notStored(error);
    });
  }

  /** What cannot be deleted is deleted when the platform starts the next time. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#flushing;
    await this.#file?.close().catch(() => {});
    await rm(this.#folder, { recursive: true, force: true }).catch(() => {});
  }

  async #store(bytes: number, path: string): Promise<void> {
    const file = await this.#open();
    await file.truncate(bytes);
    await this.#flushing;
    if (this.#failure !== undefined) throw this.#failure;
    await file.sync();
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rename(this.#path, path);
  }

  async #write(batch: Buffer): Promise<void> {
    for (const { first, pieces, bytes } of runsIn(batch)) {
      const file = await this.#open();
      for (const [number, piece] of pieces.entries()) this.#sums.note(first + number, piece);
      await writeAt(file, bytes, first * PIECE_BYTES);
      this.#flushing ??= this.#flush(file);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The kernel tells of a write that failed once, so the last flush may know nothing of it. */
  async #flush(file: FileHandle): Promise<void> {
    try {
      await file.datasync();
    } catch (error) {
      this.#failure ??= error as Error;
    } finally {
      this.#flushing = undefined;
    }
  }

  async #open(): Promise<FileHandle> {
    if (this.#file !== undefined) return this.#file;
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#file = await open(this.#path, "wx+", 0o600);
    return this.#file;
  }

  get #path(): string {
    return join(this.#folder, "memory");
  }
}

/** A disk that is nearly full takes a part, and says so only at the next write. */
async function writeAt(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
}
