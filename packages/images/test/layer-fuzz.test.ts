/** Layers that are almost archives: whatever is in one, it is read or refused, soon, and nothing else happens. */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { Bytes } from "../src/flatten/bytes.ts";
import { planOf } from "../src/flatten/emit.ts";
import { Budget, readHeads } from "../src/flatten/layer.ts";
import { Refusal } from "../src/flatten/refusal.ts";
import { NOTHING, nextEntry, padded, type TarEntry } from "../src/flatten/tar-read.ts";
import { headsOf, padding, TAR_END } from "../src/flatten/tar-write.ts";
import { addLayer, emptyRoot } from "../src/flatten/tree.ts";

const name = fc.constantFrom("a", "b", "..", ".wh.a", ".wh..wh..opq", "é", "x".repeat(130));
const path = fc
  .array(name, { minLength: 1, maxLength: 4 })
  .map((parts) => Buffer.from(parts.join("/")).toString("latin1"));
const entry = fc.record({
  kind: fc.constantFrom("file", "hardlink", "symlink", "character", "directory", "fifo"),
  path,
  target: fc.oneof(path, fc.constant("/"), fc.constant("")),
  mode: fc.integer({ min: 0, max: 0o7777 }),
  uid: fc.integer({ min: 0, max: 2 ** 32 - 2 }),
  gid: fc.constant(0),
  time: fc.integer({ min: 0, max: 2 ** 36 }),
  content: fc.uint8Array({ maxLength: 600 }),
  xattrs: fc.dictionary(fc.constantFrom("user.a", "security.capability"), fc.uint8Array({ maxLength: 40 })),
});

type Made = typeof entry extends fc.Arbitrary<infer T> ? T : never;

/** As the platform writes an archive for sqfstar. */
function archiveOf(made: readonly Made[]): Buffer {
  const parts = made.flatMap(({ content, xattrs, kind, ...rest }) => {
    const body = kind === "file" ? Buffer.from(content) : Buffer.alloc(0);
    const attributes = new Map(Object.entries(xattrs).map(([key, value]) => [key, Buffer.from(value)]));
    const head = headsOf({ ...rest, kind, size: body.length, device: [1, 300], xattrs: attributes });
    return [head, body, padding(body.length)];
  });
  return Buffer.concat([...parts, TAR_END]);
}

async function read(archive: Buffer, chunk: number): Promise<TarEntry[]> {
  async function* chunks() {
    for (let at = 0; at < archive.length; at += chunk) yield archive.subarray(at, at + chunk);
  }
  const bytes = new Bytes(chunks());
  const entries: TarEntry[] = [];
  for (let next = await nextEntry(bytes); next !== undefined; next = await nextEntry(bytes)) {
    entries.push(next);
    await bytes.each(padded(next.size), () => {});
  }
  return entries;
}

test("the last file of a layer may lack what fills its block, but no byte of its own", async () => {
  const head = headsOf({ ...NOTHING, kind: "file", path: "a", size: 5 });
  const file = join(await tempFolder("layer"), "layer.tar");
  const heads = async (content: string) => {
    const layer = Buffer.concat([head, Buffer.from(content)]);
    await writeFile(file, layer);
    const diffId = createHash("sha256").update(layer).digest("hex");
    return readHeads({ path: file, diffId }, new Budget({ bytes: 10_000, entries: 10 }));
  };
  expect(await heads("whole")).toMatchObject([{ path: "a", size: 5 }]);
  await expect(heads("whol")).rejects.toThrow("in the middle of a file");
});

test("what is written is read again, wherever its bytes are cut", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 8 }), fc.integer({ min: 1, max: 2000 }), async (made, chunk) => {
      const entries = await read(archiveOf(made), chunk);
      expect(entries.map(({ kind, path: at, target, mode, uid, time }) => [kind, at, target, mode, uid, time])).toEqual(
        made.map(({ kind, path: at, target, mode, uid, time }) => [kind, at, target, mode, uid, time]),
      );
      for (const [index, { xattrs }] of entries.entries())
        expect([...xattrs].map(([key, value]) => [key, [...value]])).toEqual(
          Object.entries(made[index]?.xattrs ?? {}).map(([key, value]) => [key, [...value]]),
        );
    }),
    { numRuns: longOr(2000, 100) },
  );
});

test("damaged layers on top of each other are merged or refused, and all that comes of them is inside the image", async () => {
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 });
  const layer = fc.tuple(fc.array(entry, { maxLength: 12 }), damage);
  await fc.assert(
    fc.asyncProperty(fc.array(layer, { minLength: 1, maxLength: 3 }), async (layers) => {
      const root = emptyRoot();
      try {
        for (const [at, [made, changes]] of layers.entries()) {
          const archive = archiveOf(made);
          for (const [where, value] of changes) archive[where % archive.length] = value;
          addLayer(root, await read(archive, 4096), at);
        }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return;
      }
      const { heads, files } = planOf(root);
      const names = [
        ...heads.map((head) => head.path),
        ...[...files.values()].flatMap((of) => [...of.values()].flat()),
      ];
      expect(new Set(names).size).toBe(names.length);
      for (const each of names) expect(each.split("/")).not.toContain("..");
      for (const each of names) expect(each).not.toMatch(/^\/|\/$|\/\/|^$/);
    }),
    { numRuns: longOr(20_000, 500) },
  );
});
