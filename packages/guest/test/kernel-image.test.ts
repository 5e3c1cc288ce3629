/**
 * Which kernels are unpacked while the guest bundle is built, and which stay as they are.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { hasPvhEntry, kernelVersion, payloadOf } from "../kernel-image.mjs";

const BUILD = join(import.meta.dirname, "../build.mjs");
const VERSION = "6.1.0-test";
const folder = useTempFolder("kernel");

/** An ELF file with one note of Xen, as the kernel's build writes it. */
function elf(noteType: number): Buffer {
  const file = Buffer.alloc(256);
  file.writeUInt32BE(0x7f454c46, 0);
  file[4] = 2;
  file.writeBigUInt64LE(64n, 0x20);
  file.writeUInt16LE(56, 0x36);
  file.writeUInt16LE(1, 0x38);
  file.writeUInt32LE(4, 64);
  file.writeBigUInt64LE(128n, 64 + 0x08);
  file.writeBigUInt64LE(40n, 64 + 0x20);
  // The first note has a name and a description that need padding.
  file.writeUInt32LE(4, 128);
  file.writeUInt32LE(5, 132);
  file.writeUInt32LE(3, 136);
  file.write("GNU", 140);
  file.writeUInt32LE(4, 152);
  file.writeUInt32LE(4, 156);
  file.writeUInt32LE(noteType, 160);
  file.write("Xen", 164);
  file.write(`Linux version ${VERSION} (someone@somewhere)`, 190);
  return file;
}

/** A bzImage around a compressed kernel. */
function bzImage(payload: Buffer): Buffer {
  const head = Buffer.alloc(1024);
  head[0x1f1] = 1;
  head.write("HdrS", 0x202);
  head.writeUInt16LE(0x280 - 0x200, 0x20e);
  head.write(`${VERSION} (someone@somewhere)`, 0x280);
  head.writeUInt32LE(0, 0x248);
  head.writeUInt32LE(payload.length + 4, 0x24c);
  return Buffer.concat([head, payload, Buffer.alloc(4)]);
}

async function build(kernel: Buffer): Promise<{ out: string; image?: string }> {
  const work = await mkdtemp(join(folder.path, "build-"));
  const file = join(work, "kernel");
  await writeFile(file, kernel);
  await promisify(execFile)(process.execPath, [BUILD, "--kernel", file, "--out", join(work, "out")]);
  const out = join(work, "out");
  return { out, ...(JSON.parse(await readFile(join(out, "bundle.json"), "utf8")) as { image?: string }) };
}

test("a kernel that QEMU can enter directly is unpacked; one that it cannot enter stays packed", async () => {
  const [direct, packed] = await Promise.all([build(bzImage(gzipSync(elf(18)))), build(bzImage(gzipSync(elf(17))))]);
  expect(direct.image).toBe("vmlinux");
  expect(await readFile(join(direct.out, "vmlinux"))).toEqual(elf(18));
  expect(packed.image).toBe("vmlinuz");
  expect((await readdir(packed.out)).toSorted()).toEqual(["bundle.json", "initrd", "vmlinuz"]);
});

test("an ELF kernel is taken as it is, and refused if QEMU cannot enter it", async () => {
  expect((await build(elf(18))).image).toBe("vmlinux");
  await expect(build(elf(17))).rejects.toThrow("This ELF kernel has no PVH entry point. Build it with CONFIG_PVH=y");
});

test("the version is read from both kinds; any other file is not a kernel", () => {
  expect(kernelVersion(elf(18))).toBe(VERSION);
  expect(kernelVersion(bzImage(Buffer.from("anything")))).toBe(VERSION);
  expect(kernelVersion(Buffer.alloc(4096))).toBeUndefined();
  expect(kernelVersion(Buffer.alloc(3))).toBeUndefined();
});

test("an unknown compression and damaged headers are no reason to fail", () => {
  expect(payloadOf(bzImage(Buffer.from("something else")))).toBeUndefined();
  expect(hasPvhEntry(elf(18).subarray(0, 100))).toBe(false);
  expect(hasPvhEntry(Buffer.from("short"))).toBe(false);
});
