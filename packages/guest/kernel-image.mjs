/**
 * Kernel images. QEMU boots two kinds: a bzImage, which unpacks itself inside the guest, and the plain ELF kernel, which
 * it enters at once (PVH). Emulated guests take most of a second to unpack themselves, so we unpack while building.
 * Pure: bytes in, bytes out.
 */

/** https://docs.kernel.org/arch/x86/boot.html#details-of-header-fields */
const SETUP_SECTORS = 0x1f1;
const MAGIC = 0x202;
const VERSION_POINTER = 0x20e;
const PAYLOAD_OFFSET = 0x248;
const PAYLOAD_LENGTH = 0x24c;
const SECTOR = 512;
/** The payload ends with its unpacked size, which tools would take for rubbish. */
const SIZE_FIELD = 4;

/** Magic numbers of the compressions that distributions use, in hexadecimal, and the program that unpacks each. */
const COMPRESSIONS = { "1f8b": "gzip", fd377a585a00: "xz", "28b52ffd": "zstd", "02214c18": "lz4" };

/** The note with the kernel's 32-bit entry point (XEN_ELFNOTE_PHYS32_ENTRY). QEMU refuses an ELF kernel without it. */
const PVH_ENTRY = 18;
const PT_NOTE = 4;

/** @param {Buffer} image */
export function isElf(image) {
  return image.length >= 64 && image.readUInt32BE(0) === 0x7f454c46 && image[4] === 2;
}

/**
 * Returns the version of a kernel, such as `6.1.0-56-cloud-amd64`. Undefined if the file is not a kernel.
 *
 * @param {Buffer} image @returns {string | undefined}
 */
export function kernelVersion(image) {
  if (isElf(image)) return /^Linux version (\S+) /.exec(textAt(image, image.indexOf("Linux version ")))?.[1];
  if (image.length < 0x250 || image.toString("latin1", MAGIC, MAGIC + 4) !== "HdrS") return undefined;
  return textAt(image, image.readUInt16LE(VERSION_POINTER) + 0x200).split(/[ \0]/, 1)[0];
}

/** @param {Buffer} bytes @param {number} at */
function textAt(bytes, at) {
  return at < 0 ? "" : bytes.toString("latin1", at, at + 128);
}

/**
 * Returns the compressed kernel inside a bzImage, and the program that unpacks it. Undefined for an unknown compression.
 *
 * @param {Buffer} image @returns {{tool: string, payload: Buffer} | undefined}
 */
export function payloadOf(image) {
  const start = ((image[SETUP_SECTORS] || 4) + 1) * SECTOR + image.readUInt32LE(PAYLOAD_OFFSET);
  const payload = image.subarray(start, start + image.readUInt32LE(PAYLOAD_LENGTH) - SIZE_FIELD);
  const head = payload.toString("hex", 0, 6);
  const found = Object.entries(COMPRESSIONS).find(([magic]) => head.startsWith(magic));
  return found && { tool: found[1], payload };
}

/** Whether QEMU can enter this ELF kernel directly. @param {Buffer} elf */
export function hasPvhEntry(elf) {
  if (!isElf(elf)) return false;
  const table = Number(elf.readBigUInt64LE(0x20));
  const size = elf.readUInt16LE(0x36);
  for (let index = 0; index < elf.readUInt16LE(0x38); index += 1) {
    const header = table + index * size;
    if (header + 0x28 > elf.length || elf.readUInt32LE(header) !== PT_NOTE) continue;
    const at = Number(elf.readBigUInt64LE(header + 0x08));
    if (notesIn(elf.subarray(at, at + Number(elf.readBigUInt64LE(header + 0x20)))).includes(PVH_ENTRY)) return true;
  }
  return false;
}

/** Returns the types of the notes whose owner is Xen. @param {Buffer} notes */
function notesIn(notes) {
  /** @type {number[]} */
  const types = [];
  for (let at = 0; at + 12 <= notes.length; ) {
    const name = notes.readUInt32LE(at);
    const description = notes.readUInt32LE(at + 4);
    if (notes.toString("latin1", at + 12, at + 15) === "Xen") types.push(notes.readUInt32LE(at + 8));
    at += 12 + aligned(name) + aligned(description);
  }
  return types;
}

/** @param {number} length */
function aligned(length) {
  return Math.ceil(length / 4) * 4;
}
