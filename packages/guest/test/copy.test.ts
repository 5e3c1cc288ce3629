/** The agent's archives: read by other programs, written by other programs, cut short, and malicious. Under the sanitizers. */
import { execFile, spawn } from "node:child_process";
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { promisify } from "node:util";
import fc from "fast-check";
import { type Header, pack } from "tar-stream";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { openTempFolder, tempFolder } from "../../platform/test/helpers/temp.ts";
import { agentParts, compile, TASK_PARTS } from "./compile.ts";

const run = promisify(execFile);
/** `enum copy_exit` in copy.h. */
const REFUSED = 3;

let tool: string;
let root: string;
beforeAll(async () => {
  const { path, dispose } = await openTempFolder("task-tool");
  tool = await compile(path, "task_tool", ["test/task_tool.c", ...agentParts(TASK_PARTS)]);
  return dispose;
}, 60_000);
beforeEach(async () => {
  root = await tempFolder("copied");
  await mkdir(join(root, "in"));
});

/** Runs a task of the agent. */
async function task(words: string[], input: Uint8Array = Buffer.alloc(0)) {
  const child = spawn(tool, words, { stdio: "pipe" });
  child.stdin.on("error", () => {}); // It need not read everything.
  child.stdin.end(input);
  const [out, err, code] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once("close", resolve)),
  ]);
  expect(err, "no sanitizer complains").not.toMatch(/Sanitizer|runtime error/);
  return { code, out, err };
}

const copyIn = (archive: Uint8Array) => task(["copy-in", join(root, "in")], archive);

type Entry = Partial<Header> & { name: string; content?: string };

/** An archive as another program writes it. */
function archiveOf(...entries: Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content, ...header } of entries) archive.entry(header, content ?? "");
  archive.finalize();
  return buffer(archive);
}

/** Everything below a directory, with what it is. */
async function tree(folder: string, at = ""): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(join(folder, at))).toSorted()) {
    const path = join(at, name);
    const info = await lstat(join(folder, path));
    if (info.isDirectory()) Object.assign(found, { [`${path}/`]: "" }, await tree(folder, path));
    else if (info.isSymbolicLink()) found[path] = `-> ${await readlink(join(folder, path))}`;
    else found[path] = await readFile(join(folder, path), "utf8");
  }
  return found;
}

describe("out", () => {
  test("GNU tar reads what the agent writes: long names, links, modes and a directory without files", async () => {
    const deep = join(root, "from", "x".repeat(120), "y".repeat(140));
    await mkdir(deep, { recursive: true });
    await mkdir(join(root, "from/empty"));
    await writeFile(join(deep, "z".repeat(100)), "long name", { mode: 0o604 });
    await writeFile(join(root, "from/ü\n"), "strange name");
    await writeFile(join(root, "from/block"), "b".repeat(1024));
    await symlink("t".repeat(300), join(root, "from/link"));
    const { code, out } = await task(["copy-out", join(root, "from")]);
    expect(code).toBe(0);
    await writeFile(join(root, "a.tar"), out);
    await run("tar", ["-xpf", join(root, "a.tar"), "-C", join(root, "in")]);
    expect(await tree(join(root, "in"))).toEqual({ "from/": "", ...prefixed("from/", await tree(join(root, "from"))) });
    const copied = join(root, "in/from", "x".repeat(120), "y".repeat(140), "z".repeat(100));
    expect((await lstat(copied)).mode & 0o777).toBe(0o604);
  });

  test("a path that does not exist, or is neither a file nor a directory", async () => {
    expect(await task(["copy-out", join(root, "no")])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/\/no: No such file/),
    });
    expect(await task(["copy-out", "/dev/null"])).toMatchObject({ code: REFUSED });
    expect(await task(["stat", join(root, "no/\u001b[2J")])).toMatchObject({
      code: 2,
      err: expect.not.stringContaining("\u001b"),
    });
  });
});

describe("in", () => {
  test.each(["gnu", "pax", "ustar", "v7"])("the agent reads what GNU tar writes as %s", async (format) => {
    const from = join(root, "from");
    await mkdir(join(from, "directory"), { recursive: true });
    const long = format === "v7" ? "short" : "l".repeat(99);
    await writeFile(join(from, "directory", long), "content");
    if (format === "gnu" || format === "pax") await writeFile(join(from, "m".repeat(200)), "longer");
    await writeFile(join(from, "empty"), "");
    await symlink("directory", join(from, "link"));
    await run("ln", [join(from, "empty"), join(from, "hard")]);
    await run("tar", [`--format=${format}`, "-cf", join(root, "a.tar"), "-C", from, "."]);
    expect(await copyIn(await readFile(join(root, "a.tar")))).toMatchObject({ code: 0, err: "" });
    expect(await tree(join(root, "in"))).toEqual(await tree(from));
  });

  test("a file that exists is replaced whole, and a link in its place is not followed", async () => {
    await writeFile(join(root, "outside"), "untouched");
    await symlink(join(root, "outside"), join(root, "in/a"));
    await writeFile(join(root, "in/b"), "old");
    expect(await copyIn(await archiveOf({ name: "a", content: "new" }, { name: "b", content: "new" }))).toMatchObject({
      code: 0,
    });
    expect(await tree(root)).toEqual({ "in/": "", "in/a": "new", "in/b": "new", outside: "untouched" });
  });

  test.each<[string, Entry[], RegExp]>([
    ["climbs out", [{ name: "../evil", content: "x" }], /leads out/],
    ["climbs out in the middle", [{ name: "a/../../evil", content: "x" }], /leads out/],
    [
      "goes through its own link",
      [
        { name: "d", type: "symlink", linkname: ".." },
        { name: "d/evil", content: "x" },
      ],
      /symbolic link/,
    ],
    [
      "makes a directory of its own link",
      [
        { name: "d", type: "symlink", linkname: ".." },
        { name: "d/", type: "directory" },
        { name: "d/evil", content: "x" },
      ],
      /not a directory/,
    ],
    ["links hard to a file outside", [{ name: "h", type: "link", linkname: "../secret" }], /leads out/],
    [
      "links hard through a link",
      [
        { name: "d", type: "symlink", linkname: ".." },
        { name: "h", type: "link", linkname: "d/secret" },
      ],
      /symbolic link/,
    ],
    ["has a device", [{ name: "dev", type: "block-device" }], /device/],
    ["has a pipe", [{ name: "pipe", type: "fifo" }], /pipe/],
    ["has a sparse file", [{ name: "s", content: "x", pax: { "GNU.sparse.major": "1" } }], /sparse/],
  ])("an archive that %s is refused, and nothing outside changes", async (_what, entries, why) => {
    await writeFile(join(root, "secret"), "s");
    const { code, err } = await copyIn(await archiveOf(...entries));
    expect({ code, err }).toEqual({ code: REFUSED, err: expect.stringMatching(why) });
    expect(Object.keys(await tree(root)).filter((path) => !path.startsWith("in"))).toEqual(["secret"]);
  });

  test("an absolute path is one below the directory", async () => {
    expect(await copyIn(await archiveOf({ name: "/etc/passwd", content: "x" }))).toMatchObject({ code: 0 });
    expect(await tree(join(root, "in"))).toEqual({ "etc/": "", "etc/passwd": "x" });
  });
});

test("an archive that is cut short anywhere leaves the old file, and no other", async () => {
  const archive = await archiveOf({ name: "a", content: "n".repeat(3000) });
  await fc.assert(
    fc.asyncProperty(fc.nat(archive.length - 1025), async (length) => {
      await writeFile(join(root, "in/a"), "old");
      const { code, err } = await copyIn(archive.subarray(0, length));
      expect({ code, err }).toEqual({ code: REFUSED, err: "The archive cannot be read: it is cut short\n" });
      const found = await tree(join(root, "in"));
      expect(found).toEqual({ a: length < 512 + 3072 - 72 ? "old" : expect.stringMatching(/^(old|n{3000})$/) });
    }),
    { numRuns: longOr(300, 25) },
  );
}, 60_000);

test("whatever the bytes are, nothing appears outside the directory, and no sanitizer complains", async () => {
  const good = await archiveOf(
    { name: "d/", type: "directory" },
    { name: `d/${"n".repeat(150)}`, content: "long", pax: { path: `d/${"n".repeat(150)}` } },
    { name: "d/link", type: "symlink", linkname: "../../" },
    { name: "d/link/x", content: "x" },
  );
  const change = fc.record({
    at: fc.nat(good.length - 1),
    bytes: fc.oneof(fc.constant(Buffer.from("../")), fc.uint8Array({ minLength: 1, maxLength: 12 })),
    repair: fc.boolean(),
  });
  await writeFile(join(root, "canary"), "alive");
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 6 }), fc.option(fc.nat(good.length)), async (changes, cut) => {
      const bytes = Buffer.from(good);
      for (const { at, bytes: other, repair } of changes) {
        bytes.set(other.subarray(0, bytes.length - at), at);
        if (repair) checksum(bytes, Math.floor(at / 512) * 512);
      }
      const { code } = await copyIn(bytes.subarray(0, cut ?? bytes.length));
      expect([0, 1, 2, REFUSED]).toContain(code);
      expect((await readdir(root)).toSorted()).toEqual(["canary", "in"]);
    }),
    { numRuns: longOr(2000, 60) },
  );
}, 120_000);

/** Makes the checksum of the header at an offset right again, so that the change gets past it. */
function checksum(bytes: Buffer, at: number): void {
  const header = bytes.subarray(at, at + 512);
  if (header.length < 512) return;
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
}

function prefixed(prefix: string, found: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(found).map(([path, content]) => [prefix + path, content]));
}
