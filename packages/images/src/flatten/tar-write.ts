/**
 * Writes tar archives for sqfstar. Long names and targets are in GNU's way, because sqfstar of squashfs-tools 4.5 takes
 * the slash from the beginning of a target in an extended (pax) head.
 */
import type { Kind, TarEntry } from "./tar-read.ts";

/** An entry without what only the reader knows. */
export type WrittenEntry = Omit<TarEntry, "headBytes">;

const BLOCK = 512;
const NAME_BYTES = 100;
const TYPES: Readonly<Record<Kind, string>> = {
  file: "0",
  hardlink: "1",
  symlink: "2",
  character: "3",
  block: "4",
  directory: "5",
  fifo: "6",
};
const NOBODYS = { mode: 0o644, uid: 0, gid: 0, time: 0, target: "", device: [0, 0] } as const;

/** What follows the last entry. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

/** The heads of an entry. */
export function headsOf(entry: WrittenEntry): Buffer {
  const records = [...entry.xattrs].map(([name, value]) => record(`SCHILY.xattr.${name}`, value));
  return Buffer.concat([
    ...(entry.path.length > NAME_BYTES ? extra("L", Buffer.from(`${entry.path}\0`, "latin1")) : []),
    ...(entry.target.length > NAME_BYTES ? extra("K", Buffer.from(`${entry.target}\0`, "latin1")) : []),
    ...(records.length > 0 ? extra("x", Buffer.concat(records)) : []),
    block(TYPES[entry.kind], entry),
  ]);
}

/** The zeros that fill the last block of a file. */
export function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

function extra(type: string, content: Buffer): Buffer[] {
  return [block(type, { ...NOBODYS, path: "extended", size: content.length }), content, padding(content.length)];
}

function block(type: string, entry: Omit<WrittenEntry, "kind" | "xattrs">): Buffer {
  const head = Buffer.alloc(BLOCK);
  head.write(entry.path.slice(0, NAME_BYTES), 0, "latin1");
  put(head, entry.mode, 100, 8);
  put(head, entry.uid, 108, 8);
  put(head, entry.gid, 116, 8);
  put(head, entry.size, 124, 12);
  put(head, entry.time, 136, 12);
  head.write(" ".repeat(8), 148, "latin1");
  head.write(type, 156, "latin1");
  head.write(entry.target.slice(0, NAME_BYTES), 157, "latin1");
  head.write("ustar  \0", 257, "latin1");
  put(head, entry.device[0], 329, 8);
  put(head, entry.device[1], 337, 8);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return head;
}

/** Octal digits, or a binary number where these do not suffice. */
function put(head: Buffer, value: number, at: number, length: number): void {
  const digits = value.toString(8);
  if (digits.length < length) {
    head.write(`${digits.padStart(length - 1, "0")}\0`, at, "latin1");
    return;
  }
  for (let rest = value, index = length - 1; index > 0; index -= 1, rest = Math.floor(rest / 256))
    head[at + index] = rest % 256;
  head[at] = 0x80;
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function record(key: string, value: Buffer): Buffer {
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  if (rest + String(length).length > length) length += 1;
  return Buffer.concat([Buffer.from(`${length} ${key}=`, "latin1"), value, Buffer.from("\n")]);
}
