/** An uploaded archive, read entry by entry and written as a machine's agent unpacks it. Nothing in it is trusted. */
import type { Readable } from "node:stream";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { Bytes, headsOf, nextEntry, padded, padding, TAR_END, type TarEntry, TarRefusal } from "@hibernaut/images/tar";
import { Refusal } from "../failure.ts";
import { MOST_ENTRIES, MOST_UNPACKED_BYTES } from "./limits.ts";
import { printable } from "./place.ts";

const COPIED: ReadonlySet<string> = new Set(["file", "directory", "symlink", "hardlink"]);

/** How entries are written: under another name, and with other permissions. */
interface Rewriting {
  /** The name of an entry in its place. Empty: the entry is left out, because it is the directory that all go into. */
  nameOf(path: string): string;
  /** Of all files; directories can be entered by whom their files can be read. Absent: as the archive says. */
  mode?: number | undefined;
}

export interface Archive {
  /** The kind and path of the first entry. Undefined when there is none. */
  first: { kind: string; path: string } | undefined;
  /** The archive, rewritten. Throws a {@link Refusal} for what is not an archive, or too large, or cannot be copied. */
  rewritten(how: Rewriting): AsyncGenerator<Buffer, void>;
}

/** Reads the beginning of an archive, which may be zipped. Rejects with a {@link Refusal} when it is not one. */
export async function openArchive(source: Readable): Promise<Archive> {
  const bytes = new Bytes(unzipped(source));
  const first = await refusing(() => nextEntry(bytes));
  return {
    first,
    async *rewritten(how) {
      let [entries, total] = [0, 0];
      for (let entry = first; entry !== undefined; entry = await refusing(() => nextEntry(bytes))) {
        entries += 1;
        total += entry.size + entry.headBytes;
        if (entries > MOST_ENTRIES) throw new Refusal(400, `The step copies more than ${MOST_ENTRIES} files.`);
        if (total > MOST_UNPACKED_BYTES)
          throw new Refusal(400, `The step copies more than ${MOST_UNPACKED_BYTES / 1024 ** 3} GB.`);
        yield* written(entry, bytes, how);
      }
      yield TAR_END;
    },
  };
}

async function* written(entry: TarEntry, bytes: Bytes, { nameOf, mode }: Rewriting): AsyncGenerator<Buffer, void> {
  if (!COPIED.has(entry.kind))
    throw new Refusal(400, `'${printable(entry.path)}' is a ${entry.kind}, which cannot be copied.`);
  const path = nameOf(entry.path);
  if (path !== "") {
    const target = entry.kind === "hardlink" ? nameOf(entry.target) : entry.target;
    const chosen = mode === undefined || entry.kind === "symlink" ? {} : { mode: modeOf(mode, entry) };
    yield headsOf({ ...entry, ...chosen, path, target, xattrs: new Map() });
  }
  for (let left = entry.size; left > 0; ) {
    const part = await refusing(() => bytes.some(left));
    if (part.length === 0) throw new Refusal(400, "The uploaded files are cut short. Upload them again.");
    left -= part.length;
    if (path !== "") yield part;
  }
  if (path !== "") yield padding(entry.size);
  await refusing(() => bytes.skip(padded(entry.size) - entry.size));
}

function modeOf(mode: number, { kind }: TarEntry): number {
  return kind === "directory" ? mode | ((mode & 0o444) >> 2) : mode;
}

/** By the first bytes: the client's option is not told. */
async function* unzipped(source: Readable): AsyncGenerator<Buffer, void> {
  const chunks = (source as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const whole = async function* () {
    yield head;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (head.length < 2 || head.readUInt16BE(0) !== 0x1f8b) return yield* whole();
  const gunzip = createGunzip();
  pipeline(whole, gunzip, () => {}); // the error, if there is one, comes out of the loop
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.startsWith("Z") !== true) throw error;
    throw new Refusal(400, "The uploaded files cannot be unzipped. Upload them again.");
  }
}

async function refusing<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TarRefusal)) throw error;
    throw new Refusal(400, `The uploaded files are not an archive that can be read: ${error.message}.`);
  }
}
