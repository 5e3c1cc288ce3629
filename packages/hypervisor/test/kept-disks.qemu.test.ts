/** Disks of a real QEMU that are kept as they were while something is written to them. No guest is booted. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, open, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { copySparse } from "@hibernaut/lib/disk-files";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { keepDisks } from "../src/qemu/kept-disks/kept-disks.ts";
import { NbdError } from "../src/qemu/kept-disks/nbd.ts";
import { removeFilters } from "../src/qemu/kept-disks/nodes.ts";
import { SavedBlocks } from "../src/qemu/kept-disks/saved-blocks.ts";
import { Qmp } from "../src/qemu/qmp.ts";

const MB = 1024 * 1024;
const DISK_BYTES = 16 * MB + 4096;
const limit = () => AbortSignal.timeout(60_000);

let folder: string;
let qemu: ChildProcess;
let qmp: Qmp;
let disk: string;
let copy: string;
let before: Buffer;

beforeEach(async () => {
  folder = await tempFolder("kept");
  [disk, copy] = [join(folder, "disk"), join(folder, "copy")];
  await writeFile(disk, Buffer.alloc(8 * MB, "before"));
  await truncate(disk, DISK_BYTES);
  before = await readFile(disk);
  qemu = spawn(
    "qemu-system-x86_64",
    [
      ...["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-accel", "tcg", "-m", "16M", "-S"],
      ...["-drive", `if=none,id=layer,file=${disk},format=raw,discard=unmap`, "-device", "virtio-blk-pci,drive=layer"],
      ...["-qmp", `unix:${join(folder, "qmp")},server=on,wait=off`],
    ],
    { stdio: "ignore" },
  );
  qmp = await Qmp.connect(join(folder, "qmp"), limit());
});
afterEach(async () => {
  const ended = once(qemu, "exit");
  qemu.kill("SIGKILL");
  await ended;
  qmp.close();
});

/** Does to the disk what its guest would do, and waits until that is done. */
const guest = (what: string) => qmp.execute("human-monitor-command", { "command-line": `qemu-io layer "${what}"` });

async function keep() {
  const kept = await keepDisks(qmp, [disk], { runDir: folder, owned: disk });
  if (kept === undefined) throw new Error("the disk is not kept");
  return kept;
}

async function byteAt(offset: number): Promise<number> {
  await using file = await open(disk, "r");
  return (await file.read(Buffer.alloc(1), 0, 1, offset)).buffer.readUInt8();
}

test("a copy that is made while the disk is written to becomes the disk of the moment before", async () => {
  const kept = await keep();
  await guest("write -P 1 0 4k");
  await guest(`write -P 1 ${3 * MB + 512} 200k`);
  await guest(`write -P 1 ${12 * MB} 64k`);
  await copyFile(disk, copy);
  await guest("write -P 2 0 1M");
  await guest(`write -z ${5 * MB} 1M`);
  await guest(`discard ${6 * MB} 1M`);
  // The last cluster is not a whole one.
  await guest(`write -P 2 ${16 * MB} 4k`);
  await copyFile(disk, `${copy}-late`);
  for (const to of [copy, `${copy}-late`]) {
    await kept.complete([{ from: disk, to }], limit());
    expect((await readFile(to)).equals(before)).toBe(true);
  }
  await kept.release();
  expect([await byteAt(0), await byteAt(16 * MB)], "the guest has what it wrote").toEqual([2, 2]);
  expect((await readdir(folder)).toSorted()).toEqual(["copy", "copy-late", "disk", "qmp"]);
});

test("what is written after the end is not kept, and the disk can be kept again", async () => {
  for (const round of [1, 2, 3]) {
    const kept = await keep();
    await guest(`write -P ${round} ${round * MB} 64k`);
    const now = await readFile(disk);
    await kept.release();
    await kept.release();
    const again = await keep();
    await guest(`write -P 9 ${round * MB} 64k`);
    await copyFile(disk, copy);
    await again.complete([{ from: disk, to: copy }], limit());
    await again.release();
    expect((await readFile(copy)).equals(now)).toBe(true);
  }
});

test("a guest that gives up free space does not fill the copy with zeros", async () => {
  const kept = await keep();
  await copySparse(disk, copy, { timeoutMs: 60_000 });
  const { blocks } = await stat(copy);
  await guest(`discard ${9 * MB} 6M`);
  await guest(`write -P 3 ${15 * MB} 64k`);
  await kept.complete([{ from: disk, to: copy }], limit());
  await kept.release();
  expect((await readFile(copy)).equals(before)).toBe(true);
  expect((await stat(copy)).blocks).toBeLessThanOrEqual(blocks);
});

test("a copy that is broken off while QEMU reads for it leaves nothing that is in the way of the next one", async () => {
  for (let round = 0; round < 3; round += 1) {
    const kept = await keep();
    await guest(`write -P ${round} 0 64k`);
    await copyFile(disk, copy);
    const early = new AbortController();
    const execute = qmp.execute.bind(qmp);
    vi.spyOn(qmp, "execute").mockImplementation(async (...args: Parameters<Qmp["execute"]>) => {
      const answer = await execute(...args);
      if (args[0] === "blockdev-backup") early.abort(new Error("never mind"));
      return answer;
    });
    await expect(kept.complete([{ from: disk, to: copy }], early.signal)).rejects.toThrow("never mind");
    vi.restoreAllMocks();
    await kept.release();
    expect(await qmp.execute("query-jobs")).toEqual([]);
  }
  const last = await keep();
  await copyFile(disk, copy);
  await last.complete([{ from: disk, to: copy }], limit());
  await last.release();
});

test("a disk without room fails the copy, and never the guest's write", async () => {
  const kept = await keep();
  vi.spyOn(SavedBlocks.prototype, "write").mockRejectedValue(new NbdError(28, "the disk is full"));
  await guest("write -P 7 0 4k");
  expect(await byteAt(0)).toBe(7);
  await copyFile(disk, copy);
  await expect(kept.complete([{ from: disk, to: copy }], limit())).rejects.toThrow(/was lost/);
  await guest("write -P 8 1M 4k");
  await kept.release();
  expect(await byteAt(MB)).toBe(8);
});

test("a platform that answers no more holds the guest's write up for seconds only", async () => {
  const kept = await keep();
  const never = Promise.withResolvers<void>();
  vi.spyOn(SavedBlocks.prototype, "write").mockReturnValue(never.promise);
  const began = performance.now();
  await guest("write -P 7 0 4k");
  expect(performance.now() - began).toBeLessThan(20_000);
  const asked = performance.now();
  expect(await byteAt(0)).toBe(7);
  await expect(kept.complete([{ from: disk, to: copy }], limit())).rejects.toThrow(/was lost/);
  await kept.release();
  expect(performance.now() - asked, "nothing waits for that answer").toBeLessThan(2_000);
  never.resolve();
  await guest("write -P 8 0 4k");
  expect(await byteAt(0)).toBe(8);
});

test("a platform that ended leaves a guest that writes, and the next one takes away what it left", async () => {
  await keep();
  // The kernel closes what a process had open.
  vi.spyOn(SavedBlocks.prototype, "write").mockRejectedValue(new NbdError(5, "gone"));
  await guest("write -P 7 0 4k");
  expect(await byteAt(0)).toBe(7);
  qmp.close();
  qmp = await Qmp.connect(join(folder, "qmp"), limit());
  await removeFilters(qmp);
  const nodes = await qmp.execute<{ "node-name": string }[]>("query-named-block-nodes", { flat: true });
  expect(nodes.filter((node) => node["node-name"].startsWith("kept-"))).toEqual([]);
  await guest("write -P 8 0 4k");
  expect(await byteAt(0)).toBe(8);
});

test("a disk that this QEMU does not have is not kept", async () => {
  expect(await keepDisks(qmp, [join(folder, "other")], { runDir: folder, owned: disk })).toBe(undefined);
});
