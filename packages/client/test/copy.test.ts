/** Copies on this side: where a copy goes, and that no archive writes outside its directory. */
import { chmod, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { type Header, pack as newArchive } from "tar-stream";
import { beforeEach, describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { pack } from "../src/copy/pack.ts";
import { planCopy, type Source, type Target } from "../src/copy/plan.ts";
import { unpack } from "../src/copy/unpack.ts";

describe("where a copy goes", () => {
  const file: Source = { path: "d/a", directory: false, base: "a" };
  const directory: Source = { path: "d", directory: true, base: "d" };
  const content: Source = { path: "d/.", directory: true, base: "d" };
  const there = (kind: Target["kind"], path = "/x/t"): Target => ({ path, kind, ...(kind && { real: "/x/t" }) });
  test.each<[string, Source, Target, { directory: string; name: string | undefined }]>([
    ["a file to a new name", file, there(undefined), { directory: "/x", name: "t" }],
    ["a file over a file", file, there("file"), { directory: "/x", name: "t" }],
    ["a file into a directory", file, there("directory"), { directory: "/x/t", name: "a" }],
    ["a directory to a new name", directory, there(undefined, "/x/t/"), { directory: "/x", name: "t" }],
    ["a directory into a directory", directory, there("directory"), { directory: "/x/t", name: "d" }],
    ["the content of a directory", content, there("directory"), { directory: "/x/t", name: undefined }],
    ["the content to a new directory", content, there(undefined), { directory: "/x", name: "t" }],
    [
      "everything",
      { path: "/", directory: true, base: "" },
      there("directory"),
      { directory: "/x/t", name: undefined },
    ],
  ])("%s", (_what, source, target, plan) => {
    expect(planCopy(source, target)).toEqual(plan);
  });

  test.each<[string, Source, Target, RegExp]>([
    ["a directory over a file", directory, there("file"), /a directory cannot replace it/],
    ["a file to a directory that is a file", file, there("file", "/x/t/"), /not a directory/],
    ["a file to a directory that is missing", file, there(undefined, "/x/t/"), /Create the directory/],
    ["a file over a device", file, there("other"), /device/],
  ])("not %s", (_what, source, target, why) => {
    expect(() => planCopy(source, target)).toThrow(why);
  });
});

describe("an archive from a machine", () => {
  let root: string;
  beforeEach(async () => {
    root = await tempFolder("unpacked");
    await mkdir(join(root, "here"));
    await writeFile(join(root, "outside"), "untouched");
  });

  type Entry = Partial<Header> & { name: string; content?: string };
  const archiveOf = (...entries: Entry[]): Promise<Buffer> => {
    const archive = newArchive();
    for (const { content = "", ...header } of entries) archive.entry(header, content);
    archive.finalize();
    return buffer(archive);
  };
  const take = (bytes: Uint8Array, name = "a") =>
    unpack(Readable.from([bytes]), { directory: join(root, "here"), name, archive: false });

  test("gets the requested name, keeps permissions and links, and loses set-user-ID", async () => {
    const archive = await archiveOf(
      { name: "src/", type: "directory", mode: 0o500 },
      { name: "src/a", mode: 0o4755, content: "a" },
      { name: "src/link", type: "symlink", linkname: "/etc/passwd" },
    );
    expect(await take(archive, "copy")).toEqual({ entries: 3, bytes: 1 });
    const modes = ["", "a"].map(async (name) => (await lstat(join(root, "here/copy", name))).mode & 0o7777);
    expect(await Promise.all(modes)).toEqual([0o500, 0o755]);
    expect(await readlink(join(root, "here/copy/link"))).toBe("/etc/passwd");
    await chmod(join(root, "here/copy"), 0o700);
  });

  test.each<[string, Entry[], RegExp]>([
    ["climbs out", [{ name: "a/../../outside", content: "x" }], /leads out/],
    [
      "has more than was requested",
      [
        { name: "a", content: "x" },
        { name: "b", content: "x" },
      ],
      /not part of/,
    ],
    [
      "goes through its own link",
      [
        { name: "a/", type: "directory" },
        { name: "a/l", type: "symlink", linkname: "../.." },
        { name: "a/l/outside", content: "x" },
      ],
      /through a link/,
    ],
    ["has a hard link", [{ name: "a", type: "link", linkname: "/etc/passwd" }], /is a link, which/],
    ["has a device", [{ name: "a", type: "character-device" }], /character-device/],
    [
      "has control characters in a name",
      [
        { name: "a/", type: "directory" },
        { name: "a/\u001b[2J", content: "x" },
      ],
      /control character/,
    ],
    ["has control characters in a link", [{ name: "a", type: "symlink", linkname: "\u0007" }], /control character/],
    ["has a name that is not UTF-8", [{ name: "a\uFFFD", content: "x" }], /UTF-8/],
    [
      "has a large record about a name",
      [{ name: "a", content: "x", pax: { comment: "c".repeat(70_000) } }],
      /larger than 64 KiB/,
    ],
  ])("that %s is refused, and nothing outside changes", async (_what, entries, why) => {
    await expect(take(await archiveOf(...entries))).rejects.toThrow(why);
    expect(await readFile(join(root, "outside"), "utf8")).toBe("untouched");
    expect((await readdir(root)).toSorted()).toEqual(["here", "outside"]);
  });

  test("does not write through a link that was here before", async () => {
    await symlink(root, join(root, "here/a"));
    await expect(
      take(await archiveOf({ name: "a/", type: "directory" }, { name: "a/outside", content: "x" })),
    ).rejects.toThrow(/exists here/);
    expect(await readFile(join(root, "outside"), "utf8")).toBe("untouched");
  });

  test("that is cut short leaves the old file, and nothing else", async () => {
    const archive = await archiveOf({ name: "a", content: "n".repeat(5000) });
    await fc.assert(
      fc.asyncProperty(fc.nat(archive.length - 1025), async (length) => {
        await writeFile(join(root, "here/a"), "old");
        await expect(take(archive.subarray(0, length))).rejects.toThrow(/cut short|Unexpected end/);
        expect(await readdir(join(root, "here"))).toEqual(["a"]);
        expect(await readFile(join(root, "here/a"), "utf8")).toMatch(/^(old|n{5000})$/);
      }),
      { numRuns: longOr(300, 30) },
    );
  });

  test("writes nothing outside, whatever its bytes are", async () => {
    const good = await archiveOf(
      { name: "a/", type: "directory" },
      { name: `a/${"n".repeat(150)}`, content: "x", pax: { path: `a/${"n".repeat(150)}` } },
      { name: "a/l", type: "symlink", linkname: "../.." },
      { name: "a/l/outside", content: "evil" },
    );
    const change = fc.record({
      at: fc.nat(good.length - 1),
      bytes: fc.oneof(fc.constant(Buffer.from("../")), fc.uint8Array({ maxLength: 8 })),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 5 }), async (changes) => {
        const bytes = Buffer.from(good);
        for (const { at, bytes: other } of changes) {
          bytes.set(other.subarray(0, bytes.length - at), at);
          repair(bytes, Math.floor(at / 512) * 512);
        }
        await take(bytes).catch(() => {});
        expect(await readFile(join(root, "outside"), "utf8")).toBe("untouched");
        expect((await readdir(root)).toSorted()).toEqual(["here", "outside"]);
      }),
      { numRuns: longOr(2000, 100) },
    );
  });

  test("comes back as it was packed", async () => {
    const from = join(root, "from");
    await mkdir(join(from, "empty"), { recursive: true });
    await writeFile(join(from, "ü".repeat(90)), "long");
    await writeFile(join(from, "zero"), "", { mode: 0o600 });
    await symlink("zero", join(from, "link"));
    await unpack(
      pack(from, "from", () => {}),
      { directory: join(root, "here"), name: "back", archive: false },
    );
    expect((await readdir(join(root, "here/back"))).toSorted()).toEqual((await readdir(from)).toSorted());
    expect(await readFile(join(root, "here/back", "ü".repeat(90)), "utf8")).toBe("long");
    await expect(buffer(pack(join(root, "missing"), "m", () => {}))).rejects.toThrow(/ENOENT/);
  });
});

/** Makes the checksum of a header right again, so that a change gets past it. */
function repair(bytes: Buffer, at: number): void {
  const header = bytes.subarray(at, at + 512);
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
}
