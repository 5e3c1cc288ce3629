/**
 * What is on the disk of pieces that never change: a sum of their files' content. Reading it takes as long as the disk needs, so it
 * is noted, and the note is believed while the files look the same, for a limited time: a disk can lose what it once
 * had, and the time of a file does not tell.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, mkdir, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile } from "@hibernaut/lib/durable";
import type { Piece } from "../piece.ts";
import type { ContentSum } from "./manifest.ts";

/** The name of the file with the notes, in the directory of the cache. */
export const SUMS_FILE = "sums.json";
/** How long a note is believed, in milliseconds. Everything that never changes is read once a month. */
const BELIEVED_MS = 30 * 24 * 60 * 60_000;
/** How much is read at a time, in bytes: few steps, and no pause that requests notice. */
const CHUNK_BYTES = 1024 * 1024;

/** The files of a piece. */
type Files = Pick<Piece, "name" | "folder" | "paths">;

interface Note extends ContentSum {
  /** What the files looked like: a sum of their paths, sizes, times and inodes. */
  look: string;
  /** When they were read. RFC 3339. */
  readAt: string;
}

interface Options {
  /** The file with the notes. It may be deleted at any time. */
  file: string;
  now: () => Date;
}

/** The sums of one backup. */
export class PieceSums {
  readonly #file: string;
  readonly #now: () => Date;
  readonly #known: ReadonlyMap<string, Note>;
  /** Only of pieces that there are still: so the file does not grow. */
  readonly #seen = new Map<string, Note>();

  private constructor({ file, now }: Options, known: ReadonlyMap<string, Note>) {
    this.#file = file;
    this.#now = now;
    this.#known = known;
  }

  /** Reads the notes of the backup before. Without them, everything is read again. */
  static async open(options: Options): Promise<PieceSums> {
    const text = await readFile(options.file, "utf8").catch(() => "{}");
    return new PieceSums(options, new Map(Object.entries(notesIn(text))));
  }

  /** Returns the noted sum of a piece; undefined when nothing is noted, or when it is time to read the files again. */
  async noted(piece: Files): Promise<ContentSum | undefined> {
    const known = this.#known.get(piece.name);
    if (known === undefined) return undefined;
    const age = this.#now().getTime() - Date.parse(known.readAt);
    const { look } = await lookOf(piece);
    if (known.look !== look || !(age >= 0 && age < BELIEVED_MS)) return undefined;
    this.#seen.set(piece.name, known);
    return { sha256: known.sha256, modified: known.modified };
  }

  /** Reads the files of a piece, and notes their sum. */
  async read(piece: Files, signal: AbortSignal): Promise<ContentSum> {
    const { look, modified, files } = await lookOf(piece);
    const all = createHash("sha256");
    for (const { path, size } of files) {
      const one = createHash("sha256");
      const content = createReadStream(join(piece.folder, path), { highWaterMark: CHUNK_BYTES, signal });
      for await (const chunk of content) one.update(chunk as Buffer);
      all.update(`${JSON.stringify(path)} ${size} ${one.digest("hex")}\n`);
    }
    const sum = { sha256: all.digest("hex"), modified };
    this.#seen.set(piece.name, { ...sum, look, readAt: this.#now().toISOString() });
    return sum;
  }

  /** Stores the notes for the next backup. Where that is not possible, it reads everything again. */
  async save(): Promise<void> {
    const text = `${JSON.stringify(Object.fromEntries(this.#seen))}\n`;
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      await replaceFile(this.#file, text, { mode: 0o600 });
    } catch {
      // A backup must not fail because the next one will take longer.
    }
  }
}

interface Look {
  look: string;
  /** When the latest of the files was written. RFC 3339. */
  modified: string;
  files: { path: string; size: bigint }[];
}

async function lookOf({ folder, paths }: Files): Promise<Look> {
  const hash = createHash("sha256");
  const files: Look["files"] = [];
  let latest = 0n;
  for (const path of await filesAt(folder, paths)) {
    const { ino, size, mtimeNs } = await lstat(join(folder, path), { bigint: true });
    hash.update(`${JSON.stringify(path)} ${ino} ${size} ${mtimeNs}\n`);
    if (mtimeNs > latest) latest = mtimeNs;
    files.push({ path, size });
  }
  return { look: hash.digest("hex"), modified: new Date(Number(latest / 1_000_000n)).toISOString(), files };
}

async function filesAt(folder: string, paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const isDirectory = (await lstat(join(folder, path))).isDirectory();
    const below = isDirectory ? (await readdir(join(folder, path))).map((name) => join(path, name)) : [];
    found.push(...(isDirectory ? await filesAt(folder, below) : [path]));
  }
  return found.toSorted();
}

/** A file that is not whole costs time, and nothing else. */
function notesIn(text: string): Record<string, Note> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, Note>;
  } catch {
    return {};
  }
}
