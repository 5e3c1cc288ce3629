/**
 * Says in a squashfs whose its root directory is, and from when: sqfstar 4.5.1 gives it to the user that it runs as, and to
 * the present, whatever it is told. https://docs.kernel.org/filesystems/squashfs.html has the format, which is little-endian.
 */
import { type FileHandle, open } from "node:fs/promises";
import { Refusal } from "./refusal.ts";

interface RootOwner {
  uid: number;
  gid: number;
  /** Seconds since 1970. */
  time: number;
}

const SUPERBLOCK_BYTES = 96;
const AT = { idCount: 26, rootInode: 32, idTable: 48, inodeTable: 64 };
/** Of an inode: its head, and where in it the numbers of its owners and its time are. */
const INODE = { bytes: 16, uid: 4, gid: 6, time: 8 };
/** Before each block of metadata is its length, with this bit when it is not compressed. */
const UNCOMPRESSED = 0x8000;
const ID_BYTES = 4;
const IDS_PER_BLOCK = 8192 / ID_BYTES;

/**
 * Inodes name owners by their places in a table. An owner that has no place, because nothing else in the image is theirs,
 * becomes root; and if root has none, it gets that of `packer`, the user that packed, unless files of the image are theirs.
 */
export async function setRootOwner(
  path: string,
  { uid, gid, time }: RootOwner,
  packer: { ids: ReadonlySet<number>; owners: ReadonlySet<number> },
): Promise<void> {
  await using file = await open(path, "r+");
  const head = await bytesAt(file, 0, SUPERBLOCK_BYTES);
  const ids = await idsOf(file, head);
  const placeOf = async (wanted: number): Promise<number | undefined> => {
    const found = [wanted, 0].map((id) => ids.findIndex(({ value }) => value === id)).find((index) => index >= 0);
    if (found !== undefined) return found;
    const free = ids.findIndex(({ value }) => packer.ids.has(value) && !packer.owners.has(value));
    const place = ids[free];
    if (place === undefined) return undefined;
    await file.write(Buffer.alloc(ID_BYTES), 0, ID_BYTES, place.at);
    place.value = 0;
    return free;
  };
  const root = head.readBigUInt64LE(AT.rootInode);
  const block = Number(head.readBigUInt64LE(AT.inodeTable)) + Number(root >> 16n);
  const { at } = await uncompressed(file, block);
  const inode = at + Number(root & 0xffffn);
  const bytes = await bytesAt(file, inode, INODE.bytes);
  const [owner, group] = [await placeOf(uid), await placeOf(gid)];
  if (owner !== undefined) bytes.writeUInt16LE(owner, INODE.uid);
  if (group !== undefined) bytes.writeUInt16LE(group, INODE.gid);
  bytes.writeUInt32LE(Math.min(time, 0xffffffff), INODE.time);
  await file.write(bytes, 0, bytes.length, inode);
}

/** The table of owners: each number, and where in the file it is. */
async function idsOf(file: FileHandle, head: Buffer): Promise<{ value: number; at: number }[]> {
  const count = head.readUInt16LE(AT.idCount);
  const blocks = Math.ceil(count / IDS_PER_BLOCK);
  const pointers = await bytesAt(file, Number(head.readBigUInt64LE(AT.idTable)), blocks * 8);
  const ids: { value: number; at: number }[] = [];
  for (let block = 0; block < blocks; block += 1) {
    const { at, length } = await uncompressed(file, Number(pointers.readBigUInt64LE(block * 8)));
    const bytes = await bytesAt(file, at, length);
    for (let offset = 0; offset < length; offset += ID_BYTES)
      ids.push({ value: bytes.readUInt32LE(offset), at: at + offset });
  }
  return ids;
}

/** Where the content of a block of metadata is. */
async function uncompressed(file: FileHandle, at: number): Promise<{ at: number; length: number }> {
  const word = (await bytesAt(file, at, 2)).readUInt16LE(0);
  if ((word & UNCOMPRESSED) === 0) throw new Refusal("pack", "sqfstar compressed what it should not");
  return { at: at + 2, length: word & ~UNCOMPRESSED };
}

async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  if (bytesRead < length) throw new Refusal("pack", "sqfstar wrote an incomplete file system");
  return buffer;
}
