/** What a template consists of, and what of a copy is believed. */
import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { never } from "@hibernaut/lib/async";
import fc from "fast-check";
import { expect, test } from "vitest";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { ArrivingTemplate } from "../../src/templates/arriving.ts";
import {
  bytesOf,
  contentsOf,
  digestOf,
  FilePieces,
  isContents,
  PIECE_BYTES,
  readPiece,
  type TemplateFile,
} from "../../src/templates/contents.ts";
import { rangesOf } from "../../src/templates/frames.ts";

const TEMPLATE = {
  ...{
    id: "0123456789abcd",
    app: "shop",
    name: "ready",
    createdAt: "2026-01-01T00:00:00.000Z",
    sizeBytes: 1,
    warmPool: 0,
  },
  machine: { id: "aaaaaaaaaaaaaa", config: { image: "app:1" }, snapshot: { generation: "G1" } },
} as unknown as TemplateRecord;

/** The files of a template: a disk of these pieces, of which the last one is short, and a memory. `null` is a hole. */
async function filesOf(pieces: readonly (number | null)[]) {
  const folder = await tempFolder();
  await mkdir(join(folder, "snapshots/G1"), { recursive: true });
  const all = pieces.map((byte) => Buffer.alloc(PIECE_BYTES, byte ?? 0));
  const layer = Buffer.concat([...all, Buffer.from("tail")]);
  await writeFile(join(folder, "layer.ext4"), layer);
  await writeFile(join(folder, "snapshots/G1/memory"), randomBytes(1000));
  await writeFile(join(folder, "snapshots/G1/seal.json"), "of this host alone");
  return { folder, layer, files: await contentsOf(folder, TEMPLATE, never()) };
}

test("a template is its files, apart from what describes them on one host, and holes need not be sent", async () => {
  const { files } = await filesOf([7, null, 9]);
  expect(files.map(({ path, size }) => [path, size])).toEqual([
    ["layer.ext4", 3 * PIECE_BYTES + 4],
    ["snapshots/G1/memory", 1000],
  ]);
  expect(bytesOf(files)).toBe(2 * PIECE_BYTES + 4 + 1000);
  expect(isContents(JSON.parse(JSON.stringify(files)), TEMPLATE)).toBe(true);
});

test("its digest changes with any byte of its files, with any of their names, and with what runs in the machines", async () => {
  const { files } = await filesOf([7]);
  const digest = digestOf(TEMPLATE, files);
  const [first, ...others] = files as [TemplateFile, ...TemplateFile[]];
  const machine = { ...TEMPLATE.machine, config: { image: "other:1" } };
  for (const [template, changed] of [
    [TEMPLATE, [{ ...first, sums: Buffer.alloc(64, 1).toString("base64") }, ...others]],
    [TEMPLATE, [{ ...first, path: "hot-pages.json" }, ...others]],
    [TEMPLATE, others],
    [{ ...TEMPLATE, machine }, files],
    [{ ...TEMPLATE, app: "other" }, files],
  ] as const)
    expect(digestOf(template as TemplateRecord, changed)).not.toBe(digest);
});

test.each([
  ["a path out of the directory", { path: "../../secrets.key" }],
  ["a path out of it in the middle", { path: "snapshots/../../x" }],
  ["an absolute path", { path: "/etc/passwd" }],
  ["a hidden file", { path: ".ssh" }],
  ["the seal of another host", { path: "snapshots/G1/seal.json" }],
  ["another generation", { path: "snapshots/G2/memory" }],
  ["a negative size", { size: -1 }],
  ["no checksums", { sums: "" }],
  ["something else than text", { path: 7 }],
])("files with %s are not believed", async (_what, wrong) => {
  const { files } = await filesOf([7]);
  const [first, ...others] = files as [TemplateFile, ...TemplateFile[]];
  expect(isContents([{ ...first, ...wrong }, ...others], TEMPLATE)).toBe(false);
});

test.each([[undefined], ["files"], [[null]], [[7]]])("%j are not the files of a template", (files) => {
  expect(isContents(files, TEMPLATE)).toBe(false);
});

test("ranges are the pieces, joined where they follow one another", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(40)), (pieces) => {
      const sorted = pieces.toSorted((a, b) => a - b);
      const ranges = rangesOf(3, sorted);
      const all = ranges.flatMap(({ first, count }) => Array.from({ length: count }, (_, index) => first + index));
      expect(all).toEqual(sorted);
      expect(ranges.every(({ file }) => file === 3)).toBe(true);
    }),
  );
});

test("a copy is continued with exactly what is missing, whatever is there of it by then", async () => {
  const { folder, layer, files } = await filesOf([1, null, 2, 3]);
  const piece = fc.constantFrom("whole", "damaged", "missing" as const);
  const left = fc.record({
    pieces: fc.array(piece, { minLength: 5, maxLength: 5 }),
    cutAt: fc.nat(layer.length),
    stranger: fc.boolean(),
  });
  const property = fc.asyncProperty(left, async ({ pieces, cutAt, stranger }) => {
    const target = await tempFolder();
    const there = Buffer.from(layer);
    for (const [index, state] of pieces.entries()) {
      const part = there.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);
      if (state === "missing") part.fill(0);
      if (state === "damaged") part[0] = (part[0] ?? 0) ^ 255;
    }
    await writeFile(join(target, "layer.ext4"), there.subarray(0, cutAt));
    if (stranger) await writeFile(join(target, "stranger"), "not of the template");
    await using arriving = await ArrivingTemplate.begin(target, files, never());
    const wanted = new FilePieces(files[0] as TemplateFile);
    for (const { file, first, count } of arriving.missing)
      for (let index = first; index < first + count; index += 1) {
        const handle = await open(join(folder, files[file]?.path ?? ""));
        const bytes = await readPiece(handle, index);
        await handle.close();
        if (file === 0) {
          const isWhole = there.subarray(index * PIECE_BYTES, index * PIECE_BYTES + bytes.length).equals(bytes);
          expect(isWhole && (index + 1) * PIECE_BYTES <= cutAt, `piece ${index} is asked for in vain`).toBe(false);
          expect(wanted.wanted()).toContain(index);
        }
        expect(arriving.isWanted(file, index, Buffer.alloc(bytes.length, 77))).toBe(false);
        expect(arriving.isWanted(file, index, bytes)).toBe(true);
        await arriving.write(file, index, bytes);
        expect(arriving.isWanted(file, index, bytes), "twice").toBe(false);
      }
    expect([arriving.missing, arriving.missingBytes]).toEqual([[], 0]);
    expect((await readFile(join(target, "layer.ext4"))).equals(layer)).toBe(true);
    expect(digestOf(TEMPLATE, await contentsOf(target, TEMPLATE, never()))).toBe(digestOf(TEMPLATE, files));
  });
  await fc.assert(property, { numRuns: longOr(300, 8) });
});

test("a copy is not durable when one of its files has gone meanwhile", async () => {
  const { folder, files } = await filesOf([7]);
  await using arriving = await ArrivingTemplate.begin(folder, files, never());
  expect(arriving.missing).toEqual([]);
  await arriving.flush();
  await rm(join(folder, "layer.ext4"));
  await expect(arriving.flush()).rejects.toMatchObject({ code: "ENOENT" });
});
