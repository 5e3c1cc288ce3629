/** The agent's tasks for files, as programs on real directories. Under the sanitizers. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTempFolder, tempFolder } from "../../platform/test/helpers/temp.ts";
import { FsExit } from "../src/protocol.ts";
import { agentParts, compile, TASK_PARTS } from "./compile.ts";

const run = promisify(execFile);
const asRoot = process.getuid?.() === 0;
/** Who owns what is made. Without root, only the caller can. */
const OWNER = asRoot ? 4711 : (process.getuid?.() ?? 0);
/** A name may have any bytes but a slash and a zero, and 255 of them. */
const ODD_NAMES = ["a\nnew\tline", " spaces ", "ünï✓", "x".repeat(255), "-rf", "*", "~", ".hidden", "\u001b[2J"];

let tool: string;
let root: string;
let hasMetadata = true;
const running = new Set<ChildProcess>();
beforeAll(async () => {
  const { path, dispose } = await openTempFolder("fs-tool");
  tool = await compile(path, "task_tool", ["test/task_tool.c", ...agentParts(TASK_PARTS)]);
  await fs.writeFile(join(path, "probe"), "");
  const { code } = await task(["fs-write", join(path, "probe"), "a", "b"]);
  hasMetadata = code === 0;
  if (!hasMetadata) console.warn("skip metadata: the file system of the temporary directory has no user attributes");
  return dispose;
}, 60_000);
beforeEach(async () => {
  root = await fs.realpath(await tempFolder("files"));
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
});

function start(words: string[], owner = String(OWNER)): ChildProcess {
  const env = { ...process.env, HOME: root, OWNER: owner };
  const child = spawn(tool, words, { stdio: "pipe", env });
  running.add(child);
  child.once("close", () => running.delete(child));
  child.stdin?.on("error", () => {}); // It need not read everything.
  return child;
}

/** Runs a task of the agent. */
async function task(words: string[], input: string | Uint8Array = "", owner?: string) {
  const child = start(words, owner);
  child.stdin?.end(input);
  return ended(child);
}

async function ended(child: ChildProcess) {
  if (child.stdout === null || child.stderr === null) throw new Error("the task has no pipes");
  const [out, err, code] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once("close", resolve)),
  ]);
  expect(err, "no sanitizer complains").not.toMatch(/Sanitizer|runtime error/);
  return { code, out, err };
}

interface Entry {
  kind: string;
  size: number;
  mode: string;
  owner: string;
  group: string;
  mtime: bigint;
  path: string;
  target: string;
  metadata: Record<string, string>;
}

/** Takes a record off the front of some fields. */
function takeEntry(fields: string[]): Entry {
  const [kind = "", size, mode = "", owner = "", group = "", mtime = "", path = "", target = ""] = fields.splice(0, 8);
  const metadata: [string, string][] = [];
  for (let left = Number(fields.shift()); left > 0; left -= 1)
    metadata.push([fields.shift() ?? "", fields.shift() ?? ""]);
  const known = { kind, size: Number(size), mode, owner, group, mtime: BigInt(mtime), path, target };
  return { ...known, metadata: Object.fromEntries(metadata) };
}

function fieldsOf(out: Buffer): string[] {
  if (out.length > 0) expect(out.at(-1), "the last field is whole").toBe(0);
  return out.toString().split("\0").slice(0, -1);
}

function entriesOf(out: Buffer): Entry[] {
  const fields = fieldsOf(out);
  const entries: Entry[] = [];
  while (fields.length > 0) entries.push(takeEntry(fields));
  return entries;
}

/** Runs a task that prints one record. */
async function entry(words: string[], input?: string | Uint8Array): Promise<Entry> {
  const { code, out, err } = await task(words, input);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const [first, ...more] = entriesOf(out);
  expect(more).toEqual([]);
  return first as Entry;
}

const at = (...names: string[]) => join(root, ...names);
const namesIn = async (directory = root) => (await fs.readdir(directory)).toSorted();
const failure = (code: number, err: string) => ({ code, err: `${err}\n` });
async function fails(words: string[], input?: string) {
  const { code, err, out } = await task(words, input);
  expect(out.toString()).toBe("");
  return { code, err };
}

describe("fs-stat", () => {
  test("says everything about a file, a directory, links and other things", async () => {
    await fs.writeFile(at("file"), "12345");
    await fs.chmod(at("file"), 0o4751);
    await fs.utimes(at("file"), 1, 1_700_000_000.25);
    await fs.symlink("file", at("link"));
    await fs.symlink("nowhere/at all", at("broken"));
    await run("mkfifo", [at("pipe")]);
    const { uid, gid } = await fs.stat(at("file"));
    expect(await entry(["fs-stat", at("file")])).toEqual({
      kind: "file",
      size: 5,
      mode: "4751",
      owner: (await run("stat", ["-c", "%U", at("file")])).stdout.trim(),
      group: (await run("stat", ["-c", "%G", at("file")])).stdout.trim(),
      mtime: 1_700_000_000_250_000_000n,
      path: at("file"),
      target: "",
      metadata: {},
    });
    expect([uid, gid]).toEqual([process.getuid?.(), process.getgid?.()]);
    expect(await entry(["fs-stat", root])).toMatchObject({ kind: "directory", path: root });
    expect(await entry(["fs-stat", at("link")])).toMatchObject({ kind: "link", path: at("link"), target: at("file") });
    expect(await entry(["fs-stat", at("broken")])).toMatchObject({ kind: "link", target: "nowhere/at all" });
    expect(await entry(["fs-stat", at("pipe")])).toMatchObject({ kind: "other" });
    expect(await entry(["fs-stat", "/"])).toMatchObject({ kind: "directory", path: "/" });
  });

  test.runIf(asRoot)("has numbers for users without a name", async () => {
    await fs.writeFile(at("file"), "");
    await fs.chown(at("file"), 54_321, 54_322);
    expect(await entry(["fs-stat", at("file")])).toMatchObject({ owner: "54321", group: "54322" });
  });

  test.each([
    ["file", "file"],
    ["~/file", "file"],
    ["~", ""],
    ["", ""],
    ["./a/../file", "file"],
    ["~//.///file/", "file"],
    ["../../../../../../../../..", "/"],
  ])("takes %j as below the user's home", async (word, name) => {
    await fs.writeFile(at("file"), "");
    expect((await entry(["fs-stat", word])).path).toBe(name === "/" ? "/" : join(root, name).replace(/\/$/, ""));
  });

  test("of nothing", async () => {
    await fs.writeFile(at("file"), "");
    expect(await fails(["fs-stat", at("no")])).toEqual(failure(FsExit.notFound, `path '${at("no")}' does not exist`));
    expect(await fails(["fs-stat", at("file/x")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-stat", at("no\n\u001b")])).toMatchObject({ err: `path '${at("no??")}' does not exist\n` });
    expect(await fails(["fs-stat", `/${"x".repeat(300)}`])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-stat", `/${"x/".repeat(3000)}`])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-stat", "x/".repeat(3000)])).toMatchObject({ code: FsExit.refused });
  });

  test("for a user who does not exist", async () => {
    const { code, err } = await task(["fs-stat", root], "", "nobody-there");
    expect({ code, err }).toEqual(failure(FsExit.unknownUser, "user 'nobody-there' does not exist"));
  });

  test.each(ODD_NAMES)("takes the name %j", async (name) => {
    await fs.writeFile(at(name), name);
    expect(await entry(["fs-stat", at(name)])).toMatchObject({ path: at(name) });
    expect((await task(["fs-read", at(name)])).out.toString()).toBe(name);
  });
});

describe("fs-list", () => {
  const paths = async (path: string, depth = "1") => {
    const { code, out, err } = await task(["fs-list", path, depth]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return entriesOf(out).map((found) => found.path);
  };

  test("is in order, to a depth, and does not follow links inside", async () => {
    await fs.mkdir(at("d/b/c/deep"), { recursive: true });
    for (const name of ["d/z", "d/a", "d/B", "d/b.txt", "d/b/x", "d/b/c/y"]) await fs.writeFile(at(name), "");
    await fs.symlink("b", at("d/link"));
    await fs.symlink("d", at("to-d"));
    const below = (...names: string[]) => names.map((name) => at("d", name));
    expect(await paths(at("d"))).toEqual(below("B", "a", "b", "b.txt", "link", "z"));
    expect(await paths(at("d"), "2")).toEqual(below("B", "a", "b", "b/c", "b/x", "b.txt", "link", "z"));
    const all = below("B", "a", "b", "b/c", "b/c/deep", "b/c/y", "b/x", "b.txt", "link", "z");
    expect(await paths(at("d"), "9")).toEqual(all);
    expect(await paths(at("to-d"), "9")).toEqual(all);
    expect(await paths(at("d/b/c/deep"))).toEqual([]);
    expect(await paths("/")).toContain("/etc");
  });

  test("has every name, and none that is temporary", async () => {
    for (const name of ODD_NAMES) await fs.writeFile(at(name), "");
    await fs.writeFile(at(".hibernaut-0123456789abcdef"), "");
    await fs.writeFile(at(".hibernaut-mine"), "");
    const names = [...ODD_NAMES, ".hibernaut-mine"].map((name) => Buffer.from(at(name)));
    expect(await paths(root)).toEqual(names.toSorted(Buffer.compare).map(String));
  });

  test("fails for anything but a directory, and for impossible depths", async () => {
    await fs.writeFile(at("file"), "");
    expect(await fails(["fs-list", at("no"), "1"])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-list", at("file"), "1"])).toEqual(
      failure(FsExit.notDirectory, `path '${at("file")}' is not a directory`),
    );
    for (const depth of ["0", "", "-1", "x", "1x"])
      expect(await fails(["fs-list", root, depth])).toMatchObject({ code: FsExit.refused });
  });

  test("of too many entries fails", { tags: "again", timeout: 60_000 }, async () => {
    await run("sh", ["-c", 'seq 1 99999 | (cd "$1" && mkdir d && cd d && xargs touch)', "sh", root]);
    const { code: enough, out } = await task(["fs-list", root, "2"]);
    const fields = out.reduce((count, byte) => count + (byte === 0 ? 1 : 0), 0);
    expect([enough, fields]).toEqual([0, 9 * 100_000]);
    await fs.writeFile(at("e"), "");
    const { code, err } = await task(["fs-list", root, "2"]);
    expect({ code, err }).toEqual({ code: FsExit.refused, err: expect.stringContaining("too many entries") });
  });
});

describe("fs-mkdir", () => {
  test("makes what leads there, for the user", async () => {
    const made = await entry(["fs-mkdir", "a/b/c"]);
    expect(made).toMatchObject({
      kind: "directory",
      path: at("a/b/c"),
      mode: "755",
      owner: asRoot ? "4711" : made.owner,
    });
    for (const path of ["a", "a/b", "a/b/c"]) expect((await fs.stat(at(path))).uid).toBe(OWNER);
    expect((await fs.stat(root)).uid).toBe(process.getuid?.());
  });

  test("does not make what is there", async () => {
    await fs.writeFile(at("file"), "");
    await fs.mkdir(at("d"));
    await fs.symlink("d", at("link"));
    await fs.symlink("nowhere", at("broken"));
    const exists = failure(FsExit.exists, `path '${at("d")}' already exists`);
    expect(await fails(["fs-mkdir", at("d")])).toEqual(exists);
    expect(await fails(["fs-mkdir", at("link")])).toMatchObject({ code: FsExit.exists });
    for (const path of ["file", "file/x", "file/x/y", "broken", "broken/x"])
      expect(await fails(["fs-mkdir", at(path)]), path).toMatchObject({ code: FsExit.notDirectory });
    expect(await namesIn()).toEqual(["broken", "d", "file", "link"]);
    expect((await entry(["fs-mkdir", at("link/new")])).path).toBe(at("link/new"));
  });
});

describe("fs-move", () => {
  test("moves files, directories and links, and makes what leads there", async () => {
    await fs.mkdir(at("d"));
    await fs.writeFile(at("d/file"), "content");
    await fs.symlink("d/file", at("link"));
    expect(await entry(["fs-move", at("d"), at("x/y/z")])).toMatchObject({ kind: "directory", path: at("x/y/z") });
    expect(await fs.readFile(at("x/y/z/file"), "utf8")).toBe("content");
    expect((await fs.stat(at("x/y"))).uid).toBe(OWNER);
    expect(await entry(["fs-move", at("link"), at("x/link")])).toMatchObject({ kind: "link" });
    await fs.writeFile(at("old"), "old");
    expect(await entry(["fs-move", at("x/y/z/file"), at("old")])).toMatchObject({ size: 7 });
    expect(await namesIn()).toEqual(["old", "x"]);
  });

  test("says why not", async () => {
    await fs.mkdir(at("d/e"), { recursive: true });
    await fs.writeFile(at("file"), "");
    expect(await fails(["fs-move", at("no"), at("x/y")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-move", at("file"), at("d")])).toMatchObject({ code: FsExit.isDirectory });
    expect(await fails(["fs-move", at("d"), at("file")])).toMatchObject({ code: FsExit.notDirectory });
    expect(await fails(["fs-move", at("file"), at("file/x")])).toMatchObject({ code: FsExit.notDirectory });
    expect(await fails(["fs-move", at("d/e"), at("d")])).toMatchObject({ code: FsExit.exists });
    expect(await fails(["fs-move", at("d"), at("d/e/f")])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-move", at("d")])).toMatchObject({ code: FsExit.refused });
    expect(await namesIn()).toEqual(["d", "file"]);
  });

  test.runIf(asRoot)("refuses another file system", async () => {
    const other = await fs.mkdtemp("/dev/shm/hibernaut-");
    await fs.writeFile(at("file"), "stays");
    try {
      if ((await fs.stat(other)).dev === (await fs.stat(root)).dev)
        return console.warn("skip: there is one file system");
      const { code, err } = await fails(["fs-move", at("file"), join(other, "file")]);
      expect({ code, err }).toEqual({ code: FsExit.failed, err: expect.stringMatching(/cross-device/i) });
      expect(await fs.readFile(at("file"), "utf8")).toBe("stays");
    } finally {
      await fs.rm(other, { recursive: true });
    }
  });
});

describe("fs-remove", () => {
  test("removes all that is below, and follows no link", async () => {
    await fs.mkdir(at("d/e/f"), { recursive: true });
    await fs.mkdir(at("outside"));
    await fs.writeFile(at("outside/file"), "stays");
    for (const name of ODD_NAMES) await fs.writeFile(at("d/e", name), "");
    await fs.symlink(at("outside"), at("d/link"));
    await fs.symlink("outside", at("link"));
    for (const path of ["d", "link"]) expect(await task(["fs-remove", at(path)])).toMatchObject({ code: 0, err: "" });
    expect(await namesIn()).toEqual(["outside"]);
    expect(await namesIn(at("outside"))).toEqual(["file"]);
  });

  test("says when nothing is there, and never removes everything", async () => {
    await fs.writeFile(at("file"), "");
    expect(await fails(["fs-remove", at("no")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-remove", at("file/x")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-remove", "/etc/.."])).toMatchObject({ code: FsExit.refused });
  });

  test("removes a tree that is deeper than a path may be long", async () => {
    const deep = `cd "$1"; i=0; while [ $i -lt 40 ]; do mkdir ${"x".repeat(200)}; cd ${"x".repeat(200)}; i=$((i+1)); done`;
    await run("sh", ["-c", deep, "sh", root]);
    expect(await task(["fs-remove", at("x".repeat(200))])).toMatchObject({ code: 0, err: "" });
    expect(await namesIn()).toEqual([]);
  });
});

describe("fs-read", () => {
  test("writes every byte", async () => {
    const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) & 255));
    await fs.writeFile(at("file"), content);
    await fs.symlink("file", at("link"));
    for (const path of ["file", "link"]) expect((await task(["fs-read", at(path)])).out.equals(content)).toBe(true);
    expect((await task(["fs-read", "/proc/self/status"])).out.toString()).toContain("Name:");
  });

  test("says why not before the first byte", async () => {
    await run("mkfifo", [at("pipe")]);
    expect(await fails(["fs-read", at("no")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-read", root])).toEqual(failure(FsExit.isDirectory, `path '${root}' is a directory`));
    expect(await fails(["fs-read", at("pipe")])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-read", "/dev/zero"])).toMatchObject({ code: FsExit.refused });
  });
});

describe("fs-write", () => {
  test("makes a file and what leads to it, for the user", async () => {
    const content = Buffer.alloc(200_000, "content\0");
    expect(await entry(["fs-write", "a/b/file"], content)).toMatchObject({
      kind: "file",
      size: 200_000,
      mode: "644",
      path: at("a/b/file"),
    });
    expect((await fs.readFile(at("a/b/file"))).equals(content)).toBe(true);
    for (const path of ["a", "a/b", "a/b/file"]) expect((await fs.stat(at(path))).uid).toBe(OWNER);
    expect(await namesIn(at("a/b"))).toEqual(["file"]);
    expect(await entry(["fs-write", at("empty")])).toMatchObject({ size: 0 });
  });

  test("keeps mode and owner of a file that exists, and follows links, also to what is not there yet", async () => {
    await fs.writeFile(at("old"), "old");
    await fs.chmod(at("old"), 0o600);
    if (asRoot) await fs.chown(at("old"), 4712, 4713);
    await fs.symlink("old", at("link"));
    await fs.symlink("link", at("link to link"));
    expect(await entry(["fs-write", at("link to link")], "new")).toMatchObject({ path: at("old"), mode: "600" });
    expect(await fs.readFile(at("old"), "utf8")).toBe("new");
    const { uid, gid } = await fs.stat(at("old"));
    if (asRoot) expect([uid, gid]).toEqual([4712, 4713]);
    await fs.symlink("new place/file", at("broken"));
    expect(await entry(["fs-write", at("broken")], "there")).toMatchObject({ path: at("new place/file") });
    expect(await fs.readFile(at("broken"), "utf8")).toBe("there");
  });

  test("says why not, and leaves nothing", async () => {
    await fs.writeFile(at("file"), "");
    await fs.symlink("loop", at("loop"));
    await fs.symlink(".", at("here"));
    await run("mkfifo", [at("pipe")]);
    const before = await namesIn();
    expect(await fails(["fs-write", root], "x")).toMatchObject({ code: FsExit.isDirectory });
    expect(await fails(["fs-write", at("here")], "x")).toMatchObject({ code: FsExit.isDirectory });
    expect(await fails(["fs-write", at("file/x")], "x")).toMatchObject({ code: FsExit.notDirectory });
    expect(await fails(["fs-write", at("loop")], "x")).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-write", at("pipe")], "x")).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-write", at("y".repeat(256))], "x")).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-write", at("new"), "key"], "x")).toMatchObject({ code: FsExit.refused });
    expect(await namesIn()).toEqual(before);
  });

  test.runIf(asRoot)("says that no space is left, and leaves the old file", async () => {
    await fs.mkdir(at("small"));
    const mounted = await run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", at("small")]).catch(() => undefined);
    if (mounted === undefined) return console.warn("skip: this process may not mount");
    try {
      await fs.writeFile(at("small/file"), "old");
      expect(await fails(["fs-write", at("small/file")], "x".repeat(200_000))).toMatchObject({ code: FsExit.noSpace });
      expect(await namesIn(at("small"))).toEqual(["file"]);
      expect(await fs.readFile(at("small/file"), "utf8")).toBe("old");
    } finally {
      await run("umount", [at("small")]);
    }
  });

  test.each(["new", "old"])("that is cut leaves the %s file as it was, and nothing else", async (name) => {
    await fs.writeFile(at("old"), "old");
    for (const size of [0, 1, 100_000]) {
      const child = start(["fs-write", at(name)]);
      child.stdin?.write(Buffer.alloc(size));
      await expect.poll(async () => (await namesIn()).length).toBe(2); // it has begun
      expect(await fs.readFile(at("old"), "utf8")).toBe("old");
      child.kill("SIGTERM");
      child.stdin?.end();
      expect(await ended(child)).toMatchObject({ code: FsExit.failed });
      expect(await namesIn()).toEqual(["old"]);
      expect(await fs.readFile(at("old"), "utf8")).toBe("old");
    }
  });

  test("replaces metadata", async ({ skip }) => {
    skip(!hasMetadata);
    const first = ["author", "me", "note", "ä b\n=", "empty", ""];
    const metadata = { author: "me", note: "ä b\n=", empty: "" };
    expect((await entry(["fs-write", at("file"), ...first], "x")).metadata).toEqual(metadata);
    expect((await entry(["fs-stat", at("file")])).metadata).toEqual(metadata);
    await run("python3", ["-c", `import os; os.setxattr(${JSON.stringify(at("file"))}, "user.other", b"x")`]);
    expect((await entry(["fs-stat", at("file")])).metadata).toEqual(metadata);
    expect(entriesOf((await task(["fs-list", root, "1"])).out)[0]?.metadata).toEqual(metadata);
    expect((await entry(["fs-write", at("file"), "only", "this"], "x")).metadata).toEqual({ only: "this" });
    expect((await entry(["fs-write", at("file")], "x")).metadata).toEqual({});
    const long = await task(["fs-write", at("long"), "k".repeat(300), "v"], "x");
    expect(long.code).not.toBe(0);
    expect(await namesIn()).toEqual(["file"]);
  });
});

describe("fs-compose", () => {
  test("joins files in their order and removes them", async () => {
    for (const name of ["1", "2", "3"]) await fs.writeFile(at(name), name.repeat(100_000));
    expect(await entry(["fs-compose", "a/all", "3", "1", "2"])).toMatchObject({ size: 300_000, path: at("a/all") });
    const expected = "3".repeat(100_000) + "1".repeat(100_000) + "2".repeat(100_000);
    expect(await fs.readFile(at("a/all"), "utf8")).toBe(expected);
    expect(await namesIn()).toEqual(["a"]);
  });

  test("may join a file to itself, and one twice", async () => {
    await fs.writeFile(at("all"), "begin ");
    await fs.writeFile(at("more"), "more ");
    await fs.symlink("all", at("link"));
    await entry(["fs-compose", at("all"), at("all"), at("more"), at("more"), at("link")]);
    expect(await fs.readFile(at("all"), "utf8")).toBe("begin more more begin ");
    expect(await namesIn()).toEqual(["all", "link"]);
  });

  test("does nothing unless all are files", async () => {
    await fs.writeFile(at("1"), "1");
    expect(await fails(["fs-compose", at("all"), at("1"), at("no")])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-compose", at("all"), at("1"), root])).toMatchObject({ code: FsExit.isDirectory });
    expect(await fails(["fs-compose", at("all"), "/dev/null"])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-compose", at("all")])).toMatchObject({ code: FsExit.refused });
    expect(await fails(["fs-compose", root, at("1")])).toMatchObject({ code: FsExit.isDirectory });
    expect(await namesIn()).toEqual(["1"]);
  });
});

describe("fs-watch", () => {
  interface Change {
    type: string;
    name: string;
    entry: Entry | undefined;
  }

  /** A watch that has started, and what it has said so far. */
  async function watch(path = root, recursive = "0", withEntries = "0") {
    const child = start(["fs-watch", path, recursive, withEntries]);
    const chunks: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(child.stdout ?? child, "data");
    const changes = () => {
      const [first, ...fields] = Buffer.concat(chunks).toString().split("\0").slice(0, -1);
      expect(first).toBe("start");
      const found: Change[] = [];
      while (fields.length > 0) {
        const [type = "", name = "", there] = fields.splice(0, 3);
        found.push({ type, name, entry: there === "1" ? takeEntry(fields) : undefined });
      }
      return found;
    };
    const said = () => changes().map(({ type, name }) => `${type} ${name}`);
    /** Waits until something made now was seen, so that all before it was, too. */
    const settled = async () => {
      await fs.writeFile(at("last"), "");
      await expect.poll(said, { timeout: 5000 }).toContain("create last");
      return said().slice(0, said().indexOf("create last"));
    };
    return { child, changes, said, settled };
  }

  test("reports what happens, by name", async () => {
    await fs.writeFile(at("there"), "");
    const { settled } = await watch();
    await fs.writeFile(at("new"), "x");
    await fs.chmod(at("new"), 0o600);
    await fs.rename(at("new"), at("other"));
    await fs.rm(at("other"));
    await fs.appendFile(at("there"), "more");
    await fs.mkdir(at("place"));
    await fs.writeFile(at("place/unseen"), "");
    expect(await settled()).toEqual([
      "create new",
      "write new",
      "chmod new",
      "rename new",
      "create other",
      "remove other",
      "write there",
      "create place",
    ]);
  });

  test("shows a file that is written whole under its own name only", async () => {
    await fs.writeFile(at("old"), "old");
    const { settled } = await watch();
    await entry(["fs-write", at("new")], "x");
    await entry(["fs-write", at("old")], "x");
    const cut = start(["fs-write", at("cut")]);
    await expect.poll(async () => (await namesIn()).some((name) => name.startsWith(".hibernaut-"))).toBe(true);
    cut.kill("SIGTERM");
    await ended(cut);
    expect(await settled()).toEqual(["create new", "write new", "create old", "write old"]);
  });

  test("has records of what is there", async () => {
    const { settled, changes } = await watch(root, "0", "1");
    await fs.writeFile(at("ü\n"), "12");
    await fs.symlink("ü\n", at("link"));
    await fs.rm(at("link"));
    await settled();
    const [first] = changes().filter(({ name }) => name === "ü\n");
    expect(first?.entry).toMatchObject({ path: at("ü\n"), kind: "file" });
    expect(changes().find(({ type }) => type === "remove")).toMatchObject({ name: "link", entry: undefined });
  });

  test("recursive: sees what is below, what appears, and what moves", async () => {
    await fs.mkdir(at("a/b"), { recursive: true });
    await fs.mkdir(at("outside"));
    const { said, settled } = await watch(root, "1");
    await fs.writeFile(at("a/b/deep"), "");
    await fs.mkdir(at("a/b/c"));
    await expect.poll(said).toContain("create a/b/c");
    await fs.writeFile(at("a/b/c/deeper"), "");
    await expect.poll(said).toContain("create a/b/c/deeper");
    await fs.rename(at("a/b"), at("moved"));
    await expect.poll(said).toContain("create moved/c/deeper");
    await fs.writeFile(at("moved/c/again"), "");
    await expect.poll(said).toContain("create moved/c/again");
    await fs.rm(at("moved"), { recursive: true });
    const all = await settled();
    expect(all.slice(0, 3)).toEqual(["create a/b/deep", "create a/b/c", "create a/b/c/deeper"]);
    expect(all).toEqual(expect.arrayContaining(["rename a/b", "create moved", "remove moved/c/again", "remove moved"]));
    expect(all.filter((line) => /a\/b\//.test(line)).length).toBe(3);
  });

  test("recursive: misses nothing of a tree that appears at once", async () => {
    const { said } = await watch(root, "1");
    const made =
      'cd "$1"; for i in 1 2 3 4 5 6 7 8 9; do mkdir -p d$i/e/f/g; touch d$i/x d$i/e/x d$i/e/f/x d$i/e/f/g/x; done';
    await run("sh", ["-c", made, "sh", root]);
    const wanted = [1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((number) =>
      ["", "/e", "/e/f", "/e/f/g", "/x", "/e/x", "/e/f/x", "/e/f/g/x"].map((rest) => `create d${number}${rest}`),
    );
    await expect.poll(said, { timeout: 5000 }).toEqual(expect.arrayContaining(wanted));
  });

  test("a burst arrives in order", async () => {
    const { said } = await watch();
    await run("sh", ["-c", 'cd "$1"; seq 1 2000 | xargs touch; seq 1 2000 | xargs rm; touch last', "sh", root]);
    await expect.poll(said, { timeout: 10_000 }).toContain("create last");
    const numbers = Array.from({ length: 2000 }, (_, index) => index + 1);
    const happened = said().filter((line) => /^(create|remove) \d+$/.test(line));
    expect(happened).toEqual([...numbers.map((n) => `create ${n}`), ...numbers.map((n) => `remove ${n}`)]);
  }, 30_000);

  test("more than the kernel keeps for a slow reader ends it with a reason", async () => {
    const child = start(["fs-watch", root, "0", "0"]);
    await once(child.stdout ?? child, "data");
    child.stdout?.pause();
    // Each is made and changed: well over what the kernel keeps (16,384 events by default) and a pipe holds.
    await run("sh", ["-c", 'cd "$1" && seq 1 30000 | xargs touch', "sh", root]);
    const { code, err } = await ended(child);
    expect({ code, err }).toEqual({ code: FsExit.failed, err: expect.stringContaining("some events are lost") });
  }, 60_000);

  test("ends with its input, and with its reader", async () => {
    const { child } = await watch();
    child.stdin?.end();
    expect(await once(child, "close")).toEqual([0, null]);
    const other = await watch();
    other.child.stdout?.destroy();
    const [code, signal] = await once(other.child, "close");
    expect(code === 0 || signal === "SIGPIPE").toBe(true);
  });

  test("of a directory that is removed says so", async () => {
    await fs.mkdir(at("d"));
    const { said, child } = await watch(at("d"));
    await fs.rmdir(at("d"));
    await expect.poll(said).toContain("remove .");
    expect(child.exitCode).toBeNull();
  });

  test("says why it cannot start", async () => {
    await fs.writeFile(at("file"), "");
    expect(await fails(["fs-watch", at("no"), "0", "0"])).toMatchObject({ code: FsExit.notFound });
    expect(await fails(["fs-watch", at("file"), "0", "0"])).toMatchObject({ code: FsExit.notDirectory });
    expect(await fails(["fs-nonsense", at("file")])).toMatchObject({ code: 125 });
  });

  test("of too many directories fails, at the start and later", async () => {
    await run("sh", ["-c", 'cd "$1"; mkdir many; cd many; seq 1 8190 | xargs mkdir', "sh", root]);
    const { child } = await watch(root, "1"); // with the two above them, the most
    const later = ended(child);
    await fs.mkdir(at("one more"));
    expect(await later).toMatchObject({ code: FsExit.refused, err: expect.stringContaining("too many directories") });
    const { code, out } = await task(["fs-watch", root, "1", "0"]);
    expect([code, out.toString()]).toEqual([FsExit.refused, ""]);
  }, 60_000);
});
