/** Memory that is sent while its guest still writes to it: what arrives in the end is what was there in the end. */
import { type FileHandle, open, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { ArrivingMemory } from "../../src/moves/arriving-memory.ts";
import { FRAMES, frame, framesOf } from "../../src/moves/frames.ts";
import { changedPieces, NO_PIECES, PIECE_BYTES, PieceSums, runsIn } from "../../src/moves/memory-pieces.ts";
import { worthAnother } from "../../src/moves/shipment.ts";

const MB = 1024 * 1024;
const REFUSAL = { notStored: (error: Error) => error, notWhole: (what: string) => new Error(what) };

let folder: string;
let memory: string;
let sums: PieceSums;

beforeEach(async () => {
  folder = await tempFolder("memory");
  memory = join(folder, "memory");
  sums = new PieceSums();
});

/** Returns what has changed since the last time. */
async function changed(): Promise<Buffer[]> {
  await using file = await open(memory);
  return await changedIn(file);
}

function changedIn(file: Pick<FileHandle, "read">): Promise<Buffer[]> {
  return Array.fromAsync(changedPieces(file, sums, { signal: never(), onBytes: () => {} }), (batch) =>
    Buffer.from(batch),
  );
}

/** Receives these batches, and says that it was all. Resolves with what has arrived. */
async function arrive(batches: readonly Buffer[], bytes: number): Promise<Buffer> {
  await using arriving = new ArrivingMemory(join(folder, "incoming"), REFUSAL);
  async function* stream() {
    for (const batch of batches) yield frame(FRAMES.memory, batch);
    yield frame(FRAMES.end, Buffer.from("{}"));
  }
  expect((await arriving.takeFrom(framesOf(stream()))).value).toMatchObject({ type: FRAMES.end });
  const path = join(folder, "files", "memory");
  await arriving.place({ bytes, sum: sums.total(bytes) }, path);
  return await readFile(path);
}

/** Fills part of the memory with a byte. */
async function write(at: number, bytes: number, value: number): Promise<void> {
  await using file = await open(memory, "r+");
  await file.write(Buffer.alloc(bytes, value), 0, bytes, at);
}

const size = fc
  .integer({ min: 0, max: 40 })
  .chain((pieces) => fc.constantFrom(pieces * PIECE_BYTES, pieces * 4096 + 7));
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ at: fc.nat(2 * MB), bytes: fc.nat(200_000), value: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ size }) },
);

test("whatever a guest writes between two rounds, and however its memory grows or shrinks, it arrives", async () => {
  const rounds = fc.array(fc.array(change, { maxLength: 4 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(size, rounds, async (before, all) => {
      sums = new PieceSums();
      await writeFile(memory, "");
      await truncate(memory, before);
      const sent: Buffer[] = [];
      for (const changes of all) {
        for (const one of changes)
          if ("size" in one) await truncate(memory, one.size);
          else await write(one.at, one.bytes, one.value);
        sent.push(...(await changed()));
      }
      const now = await readFile(memory);
      expect((await arrive(sent, now.length)).equals(now)).toBe(true);
    }),
    { numRuns: longOr(200, 20) },
  );
});

test("only what has changed is sent again, and nothing of what was never written", async () => {
  await truncate(await emptyFile(), 64 * MB);
  expect(await changed()).toEqual([]);
  await write(20 * MB, 3 * MB, 1);
  const pieces = (batches: readonly Buffer[]) => batches.flatMap(runsIn).flatMap(({ pieces: found }) => found).length;
  expect(pieces(await changed())).toBe((3 * MB) / PIECE_BYTES);
  await write(21 * MB + 5, 1, 7);
  await write(50 * MB - 1, 2, 7);
  expect((await changed()).flatMap(runsIn)).toMatchObject([
    { first: (21 * MB) / PIECE_BYTES, pieces: [{ length: PIECE_BYTES }] },
    { first: (50 * MB) / PIECE_BYTES - 1, pieces: [{}, {}] },
  ]);
  expect(await changed()).toEqual([]);
});

test("a memory that shrinks to a few bytes and grows again arrives", async () => {
  await writeFile(memory, Buffer.alloc(PIECE_BYTES, 1));
  const sent = await changed();
  await writeFile(memory, Buffer.alloc(7));
  sent.push(...(await changed()));
  await truncate(memory, PIECE_BYTES);
  sent.push(...(await changed()));
  expect((await arrive(sent, PIECE_BYTES)).equals(Buffer.alloc(PIECE_BYTES))).toBe(true);
});

test("while a large memory is read in which nothing has changed, something is sent from time to time", async () => {
  await truncate(await emptyFile(), 512 * MB);
  expect(await changed()).toEqual([NO_PIECES, NO_PIECES]);
});

describe("a disk that fails", () => {
  test("in the middle of a memory does not pass for its end", async () => {
    await writeFile(memory, Buffer.alloc(4 * MB, 1));
    await using file = await open(memory);
    const bad = 2 * MB + PIECE_BYTES;
    // Of a read that meets a bad sector, the kernel returns what comes before. Only the next read fails.
    const read = (...[room, offset, bytes, at]: [Buffer, number, number, number]) => {
      if (at >= bad) throw new Error("EIO");
      return file.read(room, offset, Math.min(bytes, bad - at), at);
    };
    await expect(changedIn({ read: read as FileHandle["read"] })).rejects.toThrow("EIO");
  });

  test("to take all of a piece is asked to take the rest", async () => {
    await writeFile(memory, Buffer.alloc(MB, 1));
    const probe = await open(memory);
    const handle = Object.getPrototypeOf(probe) as FileHandle;
    await probe.close();
    const whole = handle.write;
    const partly = vi.spyOn(handle, "write").mockImplementation(function (this: FileHandle, ...all: unknown[]) {
      const [bytes, offset, length, at] = all as [Buffer, number, number, number];
      return (whole as (...all: unknown[]) => unknown).call(this, bytes, offset, Math.min(length, 100_000), at);
    } as FileHandle["write"]);
    const arrived = await arrive(await changed(), MB).finally(() => partly.mockRestore());
    expect(arrived.equals(Buffer.alloc(MB, 1))).toBe(true);
  });
});

describe("a memory is refused", () => {
  test("of which something is missing", async () => {
    await truncate(await emptyFile(), 4 * MB);
    await write(0, 3 * MB, 1);
    const all = await changed();
    await expect(arrive(all.slice(1), 4 * MB)).rejects.toThrow("not what was sent");
    await expect(arrive([], 4 * MB)).rejects.toThrow("not what was sent");
  });

  test("of which a batch is not one", () => {
    expect(runsIn(NO_PIECES)).toEqual([]);
    const empty = Buffer.from(NO_PIECES);
    empty.writeUInt32BE(1, 0);
    expect(() => runsIn(empty)).toThrow("a batch of 0 bytes cannot have 1 pieces");
    empty.writeUInt32BE(1_000_000, 0);
    expect(() => runsIn(empty)).toThrow("cannot have 1000000 pieces");
  });
});

test("memory is sent again as long as much is left and it becomes less", () => {
  const GB = 1024 * MB;
  expect(worthAnother([])).toBe(true);
  expect(worthAnother([200 * MB])).toBe(false);
  expect(worthAnother([8 * GB])).toBe(true);
  expect(worthAnother([8 * GB, 2 * GB])).toBe(true);
  expect(worthAnother([8 * GB, 5 * GB])).toBe(false);
  expect(worthAnother([8 * GB, 2 * GB, 900 * MB])).toBe(true);
  expect(worthAnother([80 * GB, 20 * GB, 5 * GB, GB])).toBe(false);
});

async function emptyFile(): Promise<string> {
  await writeFile(memory, "");
  return memory;
}
