/**
 * Reads tar archives as layers have them: POSIX (pax) and GNU. Names and targets are strings of bytes (latin1), because a
 * name on Linux is any bytes, and extended attributes are bytes anyway.
 */
import type { Bytes } from "./bytes.ts";
import { damaged } from "./refusal.ts";

export type Kind = "file" | "hardlink" | "symlink" | "character" | "block" | "directory" | "fifo";

export interface TarEntry {
  kind: Kind;
  path: string;
  /** Permissions with the setuid, setgid and sticky bits. */
  mode: number;
  uid: number;
  gid: number;
  /** Seconds since 1970. */
  time: number;
  /** Bytes that follow. */
  size: number;
  /** Where a link leads. */
  target: string;
  /** Of a device. */
  device: readonly [major: number, minor: number];
  /** Extended attributes by name. */
  xattrs: ReadonlyMap<string, Buffer>;
  /** How many bytes its heads had, with names and attributes. */
  headBytes: number;
}

const BLOCK = 512;
/** Names and attributes of one entry. The kernel takes 64 KB for each attribute. */
const MAX_EXTENDED_BYTES = 1024 * 1024;
const KINDS: Readonly<Record<string, Kind>> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "3": "character",
  "4": "block",
  "5": "directory",
  "6": "fifo",
};
const XATTR = "SCHILY.xattr.";
/** What an entry has that says nothing else. Its parts are shared, because there may be a million entries. */
export const NOTHING: Omit<TarEntry, "kind" | "path"> = {
  ...{ mode: 0, uid: 0, gid: 0, time: 0, size: 0, target: "", headBytes: 0 },
  device: [0, 0],
  xattrs: new Map(),
};

/** What comes before an entry's own head. */
interface Extended {
  bytes: number;
  pax: Map<string, Buffer>;
  longPath?: string;
  longTarget?: string;
}

/** Reads the next head. Undefined at the end of the archive. The entry's content must be read before the next call. */
export async function nextEntry(bytes: Bytes): Promise<TarEntry | undefined> {
  const extended: Extended = { bytes: 0, pax: new Map() };
  for (;;) {
    const head = await bytes.exactly(BLOCK);
    if (head === undefined || head.every((byte) => byte === 0)) return undefined;
    checkSum(head);
    extended.bytes += BLOCK;
    const type = text(head, 156, 1) || "\0";
    const size = number(head, 124, 12);
    if (!"xgLK".includes(type)) return entryOf(head, type, size, extended);
    if (size + extended.bytes > MAX_EXTENDED_BYTES) throw damaged("the names or attributes of an entry are too long");
    const content = await bytes.exactly(padded(size));
    if (content === undefined) throw damaged("a layer ends in the middle of an entry");
    extended.bytes += content.length;
    if (type === "x") for (const [key, value] of records(content.subarray(0, size))) extended.pax.set(key, value);
    if (type === "L") extended.longPath = text(content, 0, size);
    if (type === "K") extended.longTarget = text(content, 0, size);
  }
}

/** How many bytes an entry's content takes in the archive. */
export function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}

function entryOf(head: Buffer, type: string, headSize: number, { bytes, pax, ...long }: Extended): TarEntry {
  const kind = KINDS[type];
  const sparse = [...pax.keys()].some((key) => key.startsWith("GNU.sparse."));
  if (kind === undefined || sparse)
    throw damaged(
      `a layer has an entry of a kind that images do not have (${sparse ? "sparse" : JSON.stringify(type)})`,
    );
  const ofPax = (key: string) => pax.get(key)?.toString("latin1");
  const count = (key: string, or: number) => whole(ofPax(key) ?? String(or));
  const prefix = text(head, 257, 6) === "ustar" ? text(head, 345, 155) : "";
  const name = text(head, 0, 100);
  const path = ofPax("path") ?? long.longPath ?? (prefix === "" ? name : `${prefix}/${name}`);
  return {
    // Before POSIX, a directory was a file with a slash at its end.
    kind: kind === "file" && path.endsWith("/") ? "directory" : kind,
    path,
    mode: number(head, 100, 8) & 0o7777,
    uid: count("uid", number(head, 108, 8)),
    gid: count("gid", number(head, 116, 8)),
    time: Math.max(0, Math.floor(Number(ofPax("mtime") ?? number(head, 136, 12)) || 0)),
    size: kind === "file" ? count("size", headSize) : 0,
    target: ofPax("linkpath") ?? long.longTarget ?? text(head, 157, 100),
    device: kind === "character" || kind === "block" ? [number(head, 329, 8), number(head, 337, 8)] : NOTHING.device,
    xattrs: pax.size === 0 ? NOTHING.xattrs : xattrsIn(pax),
    headBytes: bytes,
  };
}

function xattrsIn(pax: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  const found = [...pax].filter(([key]) => key.startsWith(XATTR));
  // Copies, because a part of a chunk would keep all of it in memory.
  return new Map(found.map(([key, value]) => [key.slice(XATTR.length), Buffer.from(value)]));
}

/** Bytes up to the first zero. */
function text(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString("latin1", 0, end < 0 ? field.length : end);
}

/** Octal digits, or, with the highest bit set, a binary number. */
function number(head: Buffer, at: number, length: number): number {
  const [first = 0] = head.subarray(at);
  if ((first & 0x80) === 0) {
    const digits = text(head, at, length).trim();
    if (!/^[0-7]*$/.test(digits)) throw damaged("an entry has a number that is not one");
    return Number.parseInt(digits || "0", 8);
  }
  // A negative number, such as a time before 1970, has the next bit set, too.
  if ((first & 0x40) !== 0) return 0;
  return [...head.subarray(at, at + length)].reduce(
    (sum, byte, index) => sum * 256 + (index === 0 ? byte & 0x3f : byte),
    0,
  );
}

function whole(digits: string): number {
  const value = Number(digits);
  if (!Number.isSafeInteger(value) || value < 0) throw damaged("an entry has a number that is too large");
  return value;
}

/** The sum counts its own field as spaces. Old programs added signed bytes. */
function checkSum(head: Buffer): void {
  const field = text(head, 148, 8).trim();
  let [unsigned, signed] = [0, 0];
  for (let at = 0; at < BLOCK; at += 1) {
    const byte = at >= 148 && at < 156 ? 32 : (head[at] ?? 0);
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  const found = Number.parseInt(field, 8);
  if (found !== unsigned && found !== signed) throw damaged("a layer is not a tar archive: invalid checksum");
}

/** `<length> <key>=<value>\n`, where the length counts all of it. */
function* records(content: Buffer): Iterable<[string, Buffer]> {
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(32, at);
    const length = Number(content.toString("latin1", at, space));
    const equals = content.indexOf(61, space);
    if (space < 0 || equals < 0 || !Number.isInteger(length) || at + length > content.length || at + length <= equals)
      throw damaged("an entry has attributes that cannot be read");
    yield [content.toString("latin1", space + 1, equals), content.subarray(equals + 1, at + length - 1)];
    at += length;
  }
}
