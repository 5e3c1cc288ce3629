/** The parts of a build that decide or format: rules of ignore files, archives, layouts. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { explained } from "../../src/build/build.ts";
import { complete, directory, textFile } from "../../src/build/entries.ts";
import { IGNORED_BY_DEFAULT, ignoring } from "../../src/build/ignore.ts";
import { type LayerEntry, writeLayer } from "../../src/build/layer.ts";
import { imageDocuments, indexWith } from "../../src/build/layout.ts";
import { readLdd } from "../../src/build/libraries.ts";

const signal = new AbortController().signal;

describe("an ignore file", () => {
  test.each<[string[], string, boolean]>([
    [["logs"], "logs", true],
    [["logs"], "logs/a/b.txt", true],
    [["logs"], "old/logs", false],
    [["/logs/"], "logs", true],
    [["*.md"], "README.md", true],
    [["*.md"], "docs/a.md", false],
    [["**/*.md"], "docs/deep/a.md", true],
    [["**/*.md"], "a.md", true],
    [["*.md", "!README.md"], "README.md", false],
    [["docs", "!docs/keep.md"], "docs/keep.md", false],
    [["docs", "!docs/keep.md"], "docs/other.md", true],
    [["# logs", "", "  "], "logs", false],
    [["temp?"], "temp1", true],
    [["temp?"], "temp/1", false],
    [["a[0-9].txt"], "a5.txt", true],
    [["a[^0-9].txt"], "a5.txt", false],
    [["a.b"], "axb", false],
    [["a\\*b"], "a*b", true],
    [["a\\*b"], "axb", false],
    [["../x"], "x", true],
    [[...IGNORED_BY_DEFAULT], "packages/web/node_modules/x.js", true],
    [[...IGNORED_BY_DEFAULT], ".env", true],
    [[...IGNORED_BY_DEFAULT, "!.env"], ".env", false],
    [[...IGNORED_BY_DEFAULT], "src/env.js", false],
  ])("with %j and the path %s", (rules, path, ignored) => expect(ignoring(rules)(path)).toBe(ignored));

  test("is read whatever it contains", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab*?[]!^-/\\.(){}|+$ ".split("")) });
    fc.assert(fc.property(text, text, (rule, path) => typeof ignoring([rule])(path) === "boolean"));
  });
});

describe("a layer", () => {
  test("has what tar unpacks from it, with long names too, and the same bytes each time", async () => {
    const folder = await tempFolder("layer");
    const long = `${"deep/".repeat(60)}file`;
    writeFileSync(join(folder, "source"), "from a file\n");
    const entries: LayerEntry[] = complete([
      textFile("app/empty", ""),
      textFile(`app/${long}`, "far away"),
      textFile("app/ünï.txt", "umlauts"),
      { kind: "file", path: "app/run", mode: 0o755, owner: 1000, size: 12, from: join(folder, "source") },
      { kind: "link", path: "app/link", mode: 0o777, owner: 0, size: 0, target: "run" },
      directory("tmp", { mode: 0o1777 }),
    ]);
    const [first, second] = [await writeLayer(folder, entries, signal), await writeLayer(folder, entries, signal)];
    expect(second).toEqual(first);
    const blob = join(folder, first.digest.slice("sha256:".length));
    execFileSync("tar", ["-xzf", blob, "-C", folder, "--no-same-owner"]);
    const read = (path: string) => execFileSync("cat", [join(folder, path)], { encoding: "utf8" });
    expect([read("app/link"), read(`app/${long}`), read("app/ünï.txt")]).toEqual([
      "from a file\n",
      "far away",
      "umlauts",
    ]);
    const listing = execFileSync("tar", ["-tvzf", blob, "--numeric-owner"], { encoding: "utf8" });
    expect(listing).toMatch(/^-rwxr-xr-x 1000\/1000 +12 1970-01-01 00:00 app\/run$/m);
    expect(listing).toMatch(/^drwxrwxrwt .* tmp\/$/m);
  });

  test("that is given up leaves nothing, and says why", async () => {
    const folder = await tempFolder("layer");
    const controller = new AbortController();
    const entry: LayerEntry = { kind: "file", path: "zero", mode: 0o644, owner: 0, size: 1e12, from: "/dev/zero" };
    const written = writeLayer(folder, [entry], controller.signal);
    controller.abort(new Error("it is late"));
    await expect(written).rejects.toThrow("it is late");
    expect(execFileSync("ls", ["-A", folder], { encoding: "utf8" })).toBe("");
  });

  test("is refused when a file shrinks while it is read", async () => {
    const folder = await tempFolder("layer");
    const from = join(folder, "log");
    writeFileSync(from, "short");
    const entry: LayerEntry = { kind: "file", path: "log", mode: 0o644, owner: 0, size: 1000, from };
    await expect(writeLayer(folder, [entry], signal)).rejects.toThrow(/became shorter while it was packed/);
    expect(execFileSync("ls", ["-A", folder], { encoding: "utf8" })).toBe("log\n");
  });
});

test("an image has the same digest for the same layers and settings, and another for others", () => {
  const layer = { digest: `sha256:${"1".repeat(64)}`, size: 3, diffId: `sha256:${"2".repeat(64)}` };
  const digest = (cmd: string) => imageDocuments([layer], { Cmd: [cmd] }).manifest.descriptor.digest;
  expect(digest("a")).toBe(digest("a"));
  expect(digest("a")).not.toBe(digest("b"));
});

test("an index has the newest image first, each image once, and only as many as are kept", () => {
  const image = (digest: string) => ({ mediaType: "m", digest, size: 1 });
  const digests = (list: { digest: string }[]) => list.map((one) => one.digest).join("");
  expect(digests(indexWith(image("c"), ["b", "a"].map(image), 3))).toBe("cba");
  expect(digests(indexWith(image("a"), ["c", "b", "a"].map(image), 3))).toBe("acb");
  expect(digests(indexWith(image("d"), ["c", "b", "a"].map(image), 3))).toBe("dcb");
});

test.each([
  [{ code: "ENOSPC" }, "resource_exhausted", "no room for the build in /srv/builds"],
  [{ code: "EACCES", path: "/srv/builds/shop" }, "permission_denied", "Set HIBERNAUT_BUILD_DIR"],
  [{ code: "EACCES", path: "/home/me/shop/key" }, "permission_denied", "list it in .dockerignore"],
])("the disk's error %j says what to do", (error, code, advice) => {
  expect(explained(error, "/srv/builds")).toMatchObject({ code, message: expect.stringContaining(advice) });
});

test("libraries go next to the C library, except for the loader", () => {
  const output = `
	linux-vdso.so.1 (0x00007ffc)
	libfoo.so.2 => /opt/foo/libfoo.so.2 (0x00007f01)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f02)
	/lib64/ld-linux-x86-64.so.2 (0x00007f03)
`;
  expect(readLdd(output)).toEqual([
    { from: "/opt/foo/libfoo.so.2", to: "/lib/x86_64-linux-gnu/libfoo.so.2" },
    { from: "/lib/x86_64-linux-gnu/libc.so.6", to: "/lib/x86_64-linux-gnu/libc.so.6" },
    { from: "/lib64/ld-linux-x86-64.so.2", to: "/lib64/ld-linux-x86-64.so.2" },
  ]);
  expect(readLdd("\tstatically linked\n")).toEqual([]);
  expect(readLdd("\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x00007f)\n")).toBeUndefined();
});
