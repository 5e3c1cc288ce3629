/**
 * A template that comes from other hosts: what is written is what has been checked, and what is there is checked again when
 * the copy is continued. So nothing has to be noted about how far it is, and nothing is believed after a power cut.
 */
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { flush } from "@hibernaut/lib/durable";
import { FilePieces, PIECE_BYTES, readPiece, type TemplateFile } from "./contents.ts";
import { type Range, rangesOf } from "./frames.ts";

/** What is written at most before the disk is told to keep it, in bytes, so that little is left for the end. */
const FLUSH_BYTES = 64 * 1024 * 1024;

export class ArrivingTemplate implements AsyncDisposable {
  readonly #folder: string;
  readonly #files: readonly TemplateFile[];
  readonly #open: FileHandle[] = [];
  readonly #pieces: FilePieces[];
  /** By file, the numbers of pieces that are not there. */
  readonly #missing: Set<number>[] = [];
  #unflushed = 0;

  private constructor(folder: string, files: readonly TemplateFile[]) {
    this.#folder = folder;
    this.#files = files;
    this.#pieces = files.map((file) => new FilePieces(file));
  }

  /** Begins, with what an earlier attempt left in the directory. Rejects when the disk cannot be read or written. */
  static async begin(folder: string, files: readonly TemplateFile[], signal: AbortSignal): Promise<ArrivingTemplate> {
    const arriving = new ArrivingTemplate(folder, files);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await arriving.#removeOthers();
      for (const file of files) await arriving.#openFile(file, signal);
      return arriving;
    } catch (error) {
      await arriving[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What is not there yet, in the order of the files. */
  get missing(): Range[] {
    return this.#missing.flatMap((pieces, file) =>
      rangesOf(
        file,
        [...pieces].toSorted((a, b) => a - b),
      ),
    );
  }

  /** In bytes. */
  get missingBytes(): number {
    const each = this.#missing.map((pieces, file) =>
      [...pieces].reduce((sum, piece) => sum + (this.#pieces[file]?.lengthOf(piece) ?? 0), 0),
    );
    return each.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Whether these bytes are that piece of the template, and one that is missing. */
  isWanted(file: number, piece: number, bytes: Buffer): boolean {
    return this.#missing[file]?.has(piece) === true && this.#pieces[file]?.is(piece, bytes) === true;
  }

  /** Writes a piece that {@link isWanted}. Rejects when the disk cannot take it. */
  async write(file: number, piece: number, bytes: Buffer): Promise<void> {
    const handle = this.#open[file];
    if (handle === undefined) throw new Error(`there is no file ${file}`);
    await writeAt(handle, bytes, piece);
    this.#missing[file]?.delete(piece);
    this.#unflushed += bytes.length;
    if (this.#unflushed < FLUSH_BYTES) return;
    this.#unflushed = 0;
    await handle.datasync();
  }

  /** Makes all of it durable. Rejects when a file of the template is not there any more. */
  async flush(): Promise<void> {
    const paths = this.#files.map(({ path }) => join(this.#folder, path));
    for (const path of paths) await flush(path);
    // The entries of each directory, from the files up.
    const folders = new Set(paths.flatMap((path) => this.#above(path)));
    for (const folder of [...folders].toSorted((a, b) => b.length - a.length)) await flush(folder);
  }

  /** Its files stay, for the next attempt. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#open.splice(0)) await file.close().catch(() => {});
    const now = new Date();
    await utimes(this.#folder, now, now).catch(() => {}); // its life is counted from here
  }

  /** The directories in which a file is, up to the template's. */
  #above(path: string): string[] {
    const folder = dirname(path);
    return folder.length <= this.#folder.length ? [this.#folder] : [folder, ...this.#above(folder)];
  }

  /** A copy that is continued holds nothing that is not of the template. */
  async #removeOthers(): Promise<void> {
    const wanted = new Set(this.#files.map(({ path }) => join(this.#folder, path)));
    for (const entry of await readdir(this.#folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isDirectory() && !(entry.isFile() && wanted.has(path))) await rm(path, { force: true });
    }
  }

  async #openFile(file: TemplateFile, signal: AbortSignal): Promise<void> {
    const path = join(this.#folder, file.path);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const number = this.#open.push(handle) - 1;
    const { size } = await handle.stat();
    await handle.truncate(file.size);
    const pieces = this.#pieces[number] as FilePieces;
    const missing = new Set(pieces.wanted());
    this.#missing.push(missing);
    if (size === 0) return;
    const room = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (let piece = 0; piece < pieces.count; piece += 1) {
      signal.throwIfAborted();
      if (pieces.is(piece, await readPiece(handle, piece, room))) missing.delete(piece);
      else if (!missing.has(piece)) await writeAt(handle, Buffer.alloc(pieces.lengthOf(piece)), piece);
    }
  }
}

/** A disk that is nearly full takes a part, and says so only at the next write. */
async function writeAt(file: FileHandle, bytes: Buffer, piece: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, piece * PIECE_BYTES + done)).bytesWritten;
}
