/**
 * The seal of a generation: checksums of all of its memory, made in the background after it was published, and what the
 * file looked like to the host then. As long as the file looks the same, nobody has written to it, and a wake checks only
 * the pages that it needs.
 */
import { type FileHandle, readFile } from "node:fs/promises";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { PAGE, type PageRange, piecesOf } from "@hibernaut/lib/page-ranges";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { checkedJson, readCheckedJson } from "./checked-json.ts";
import { checksums, chunksOf } from "./checksums.ts";

const Sum = Type.Integer({ minimum: 0, maximum: 0xffff_ffff });
const Count = Type.Integer({ minimum: 0 });

/** What the host says about a memory file. Any difference means that it may have changed from outside. */
const FileState = Type.Object({
  /** The host's boot. A file that went through a restart may have gone through a crash. */
  boot_id: Type.String(),
  device: Type.String(),
  inode: Type.String(),
  /** Bytes. */
  size: Count,
  /** Nanoseconds since 1970: the last write, and the last change of anything. */
  modified_ns: Type.String(),
  changed_ns: Type.String(),
});
type FileState = Static<typeof FileState>;

const Seal = Type.Object({
  format: Type.Literal(1),
  /** When all of the memory was read last, RFC 3339. */
  verified_at: Type.String(),
  file: FileState,
  /** Other machines' snapshots have the same file, whose links come and go. */
  linked: Type.Optional(Type.Literal(true)),
  /** CRC-32 of each MiB. */
  chunks: Type.Array(Sum),
  /** CRC-32 of the pages that the last wake needed: first page, page after the last, sum. */
  hot: Type.Array(Type.Tuple([Count, Count, Sum])),
});
export type Seal = Static<typeof Seal>;

const FIELDS: readonly [keyof FileState, string][] = [
  ["boot_id", "the host was restarted"],
  ["device", "it is on another file system"],
  ["inode", "it is another file"],
  ["size", "its size has changed"],
  ["modified_ns", "it was written to"],
  ["changed_ns", "it was written to, or linked"],
];

/** Why the file may have changed since it was sealed. Undefined when it cannot have. */
export function touched(was: FileState, now: FileState, { linked }: Pick<Seal, "linked"> = {}): string | undefined {
  // A link is a change like any other of what the host says, and not of what is in the file.
  const telling = linked === true ? FIELDS.filter(([field]) => field !== "changed_ns") : FIELDS;
  return telling.find(([field]) => was[field] !== now[field])?.[1];
}

/** Describes the open memory file. */
export async function fileState(file: FileHandle, bootId: string): Promise<FileState> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
  return {
    boot_id: bootId,
    device: String(dev),
    inode: String(ino),
    size: Number(size),
    modified_ns: String(mtimeNs),
    changed_ns: String(ctimeNs),
  };
}

/** Makes the seal of an open memory file that nobody writes to. Rejects when aborted, or when the file was written to. */
export async function sealOf(
  file: FileHandle,
  { bootId, hotPages, now }: { bootId: string; hotPages: readonly PageRange[]; now: Date },
  signal: AbortSignal,
): Promise<Seal> {
  const before = await fileState(file, bootId);
  const hot = [...piecesOf(hotPages)].filter(([from]) => from * PAGE < before.size);
  const chunks = await checksums(file, chunksOf(before.size), signal);
  const sums = await checksums(file, hot, signal);
  const after = await fileState(file, bootId);
  if (touched(before, after, { linked: true }) !== undefined)
    throw new Error("the memory was written to while it was read");
  return {
    format: 1,
    verified_at: now.toISOString(),
    file: after,
    chunks,
    hot: hot.map(([from, to], index) => [from, to, sums[index] as number]),
  };
}

/** Reads a generation's seal. Undefined when there is none, or it is damaged: then nothing is known. */
export async function readSeal(path: string): Promise<Seal | undefined> {
  const value = readCheckedJson(await readFile(path, "utf8").catch(ifAbsent("")));
  return Value.Check(Seal, value) ? value : undefined;
}

/** Writes a generation's seal, durably. */
export async function writeSeal(path: string, seal: Seal): Promise<void> {
  await replaceFile(path, checkedJson(seal), { mode: 0o600 });
}

/** Reads all of the memory. Returns where it differs from what was sealed, and undefined when it does not. */
export async function damageIn(
  file: FileHandle,
  { chunks, file: { size } }: Seal,
  signal: AbortSignal,
): Promise<string | undefined> {
  const now = (await file.stat()).size;
  if (now !== size) return `the memory file has ${now} bytes instead of ${size}`;
  return differing(chunks, await checksums(file, chunksOf(size), signal));
}

/** Reads the pages that the last wake needed. Returns like {@link damageIn}. */
export async function damageInHotPages(
  file: FileHandle,
  { hot }: Seal,
  signal: AbortSignal,
): Promise<string | undefined> {
  const sums = await checksums(
    file,
    hot.map(([from, to]) => [from, to]),
    signal,
  );
  const at = hot.findIndex(([, , sum], index) => sum !== sums[index]);
  return at < 0 ? undefined : `the memory file has changed, in page ${hot[at]?.[0]} or soon after`;
}

/** Says in which MiB sums differ. */
export function differing(wanted: readonly number[], found: readonly number[]): string | undefined {
  const at = wanted.findIndex((sum, index) => sum !== found[index]);
  return at < 0 ? undefined : `the memory file has changed, in MiB ${at + 1} of ${wanted.length}`;
}
