/** Tar archives for the layers of images: the same entries give the same bytes. Pure. */

/** One file, directory or symbolic link of a layer. */
export interface TarEntry {
  kind: "file" | "directory" | "link";
  /** Without a slash at the beginning or the end. */
  path: string;
  /** Permissions, such as 0o644. */
  mode: number;
  /** User and group. */
  owner: number;
  /** Bytes that follow the head; 0 for anything but a file. */
  size: number;
  /** Where a link leads. */
  target?: string;
  /** Seconds since 1970; default: 0, so that the time of a build changes nothing. */
  time?: number;
}

const BLOCK = 512;
const NAME_BYTES = 100;
/** Eleven octal digits are what the field for the size holds: 8 GiB. */
const MAX_OCTAL_SIZE = 0o77777777777;
const TYPES = { file: "0", link: "2", directory: "5", extended: "x" } as const;

/** What follows the last entry. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

/** The head of an entry. Names that the classic head cannot hold go into an extended head in front of it. */
export function tarHead(entry: TarEntry): Buffer {
  const path = entry.kind === "directory" ? `${entry.path}/` : entry.path;
  const records = [
    ...(Buffer.byteLength(path) > NAME_BYTES ? [["path", path] as const] : []),
    ...(Buffer.byteLength(entry.target ?? "") > NAME_BYTES ? [["linkpath", entry.target ?? ""] as const] : []),
    ...(entry.size > MAX_OCTAL_SIZE ? [["size", String(entry.size)] as const] : []),
  ];
  const head = block(TYPES[entry.kind], { ...entry, path });
  if (records.length === 0) return head;
  const extended = Buffer.from(records.map(([key, value]) => record(key, value)).join(""));
  const before = block(TYPES.extended, { path: "extended", mode: 0o644, owner: 0, size: extended.length });
  return Buffer.concat([before, extended, tarPadding(extended.length), head]);
}

/** The zeros that fill the last block of a file. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

function block(type: string, { path, mode, owner, size, target = "", time = 0 }: Omit<TarEntry, "kind">): Buffer {
  const head = Buffer.alloc(BLOCK);
  const put = (bytes: Buffer, at: number, length: number) => bytes.copy(head, at, 0, Math.min(bytes.length, length));
  const octal = (value: number, at: number, length: number) =>
    head.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  put(Buffer.from(path), 0, NAME_BYTES);
  octal(mode, 100, 8);
  octal(owner, 108, 8);
  octal(owner, 116, 8);
  octal(size > MAX_OCTAL_SIZE ? 0 : size, 124, 12);
  octal(time, 136, 12);
  head.write("        ", 148, "latin1");
  head.write(type, 156, "latin1");
  put(Buffer.from(target), 157, NAME_BYTES);
  head.write("ustar\x0000", 257, "latin1");
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return head;
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function record(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length > length) length += 1;
  return `${length} ${key}=${value}\n`;
}
