/**
 * What a template consists of: its files, piece by piece, each with a checksum. It never changes, so one checksum over all of
 * that, which the directory has, says what any host may be given as the template.
 */
import { createHash, hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { filesOf, travels } from "../moves/pack.ts";

/** What is checked and sent as a whole, in bytes: 1 MiB, which a disk reads as fast as more, and 32 bytes of checksum stand for. */
export const PIECE_BYTES = 1024 * 1024;
const SUM_BYTES = 32;
const ZEROS = Buffer.alloc(PIECE_BYTES);
/** Stands for a piece of zeros, which is a hole in the file and is not sent. */
const SUM_OF_ZEROS = Buffer.alloc(SUM_BYTES);

/** A file of a template. */
export interface TemplateFile {
  /** Relative to the template's directory. */
  path: string;
  /** In bytes. */
  size: number;
  /** SHA-256 of each piece, one after the other, in base64. */
  sums: string;
}

/** Reads all of a template's files. Rejects with the signal's reason, and when one cannot be read. */
export async function contentsOf(
  folder: string,
  { machine }: Pick<TemplateRecord, "machine">,
  signal: AbortSignal,
): Promise<TemplateFile[]> {
  const { paths } = await filesOf(folder, machine);
  const files: TemplateFile[] = [];
  for (const path of paths) {
    await using file = await open(join(folder, path));
    const { size } = await file.stat();
    const sums: Buffer[] = [];
    const room = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (let piece = 0; piece < piecesOf(size); piece += 1) {
      signal.throwIfAborted();
      sums.push(sumOf(await readPiece(file, piece, room)));
    }
    files.push({ path, size, sums: Buffer.concat(sums).toString("base64") });
  }
  return files;
}

/** SHA-256 over all of it, hex: the files, and the record, which says what runs in the machines. Pure. */
export function digestOf(
  { id, app, name, createdAt, machine }: TemplateRecord,
  files: readonly TemplateFile[],
): string {
  const all = createHash("sha256").update(JSON.stringify([id, app, name, createdAt, machine]));
  for (const { path, size, sums } of files) all.update(`\n${JSON.stringify([path, size, sums])}`);
  return all.digest("hex");
}

/** How many bytes are sent at most: all pieces that are not zeros. Pure. */
export function bytesOf(files: readonly TemplateFile[]): number {
  const each = files.map((file) => {
    const pieces = new FilePieces(file);
    return pieces.wanted().reduce((sum, piece) => sum + pieces.lengthOf(piece), 0);
  });
  return each.reduce((total, bytes) => total + bytes, 0);
}

/** Whether these can be the files of this template, and would be written nowhere but in its directory. Pure. */
export function isContents(files: unknown, { machine }: Pick<TemplateRecord, "machine">): files is TemplateFile[] {
  if (!Array.isArray(files)) return false;
  const paths = new Set<unknown>();
  for (const file of files as Partial<Record<keyof TemplateFile, unknown>>[]) {
    const { path, size, sums } = file ?? {};
    if (typeof path !== "string" || typeof sums !== "string" || !Number.isSafeInteger(size)) return false;
    if (!PLAIN_PATH.test(path) || !travels(path, machine.snapshot?.generation)) return false;
    if ((size as number) < 0 || Buffer.from(sums, "base64").length !== piecesOf(size as number) * SUM_BYTES)
      return false;
    paths.add(path);
  }
  return paths.size === files.length;
}

/** Names of letters, digits and a few signs, none of which begins with a dot. */
const PLAIN_PATH = /^(?!\.)[\w.-]+(?:\/(?!\.)[\w.-]+)*$/;

/** The pieces of one file. */
export class FilePieces {
  readonly #size: number;
  readonly #sums: Buffer;

  constructor({ size, sums }: TemplateFile) {
    this.#size = size;
    this.#sums = Buffer.from(sums, "base64");
  }

  get count(): number {
    return piecesOf(this.#size);
  }

  /** The numbers of those that are not zeros. */
  wanted(): number[] {
    const all = Array.from({ length: this.count }, (_, piece) => piece);
    return all.filter((piece) => !sumAt(this.#sums, piece).equals(SUM_OF_ZEROS));
  }

  /** In bytes. */
  lengthOf(piece: number): number {
    return Math.min(PIECE_BYTES, this.#size - piece * PIECE_BYTES);
  }

  /** Whether these bytes are that piece of the file. */
  is(piece: number, bytes: Buffer): boolean {
    if (piece < 0 || piece >= this.count || bytes.length !== this.lengthOf(piece)) return false;
    return sumOf(bytes).equals(sumAt(this.#sums, piece));
  }
}

/** Reads a piece into the room; shorter at the end of the file, and empty after it. */
export async function readPiece(
  file: Pick<FileHandle, "read">,
  piece: number,
  room: Buffer = Buffer.allocUnsafe(PIECE_BYTES),
): Promise<Buffer> {
  let filled = 0;
  for (let last = 1; last > 0 && filled < room.length; filled += last)
    ({ bytesRead: last } = await file.read(room, filled, room.length - filled, piece * PIECE_BYTES + filled));
  return room.subarray(0, filled);
}

function piecesOf(size: number): number {
  return Math.ceil(size / PIECE_BYTES);
}

function sumAt(sums: Buffer, piece: number): Buffer {
  return sums.subarray(piece * SUM_BYTES, (piece + 1) * SUM_BYTES);
}

function sumOf(bytes: Buffer): Buffer {
  return bytes.equals(ZEROS.subarray(0, bytes.length)) ? SUM_OF_ZEROS : hash("sha256", bytes, "buffer");
}
