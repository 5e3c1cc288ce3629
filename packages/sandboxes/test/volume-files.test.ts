/** What the scripts for files of volumes do, with this computer's shell and a directory in place of a guest and its volume. */
import { execFile } from "node:child_process";
import { mkdir, readFile, realpath, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { entriesIn } from "../src/volume/entry.ts";
import * as scripts from "../src/volume/scripts.ts";

const run = promisify(execFile);
/** A word that is an option, and one with what shells and lists take for something else. */
const ODD = ["-rf", "a b'\"$(touch x)\n*"];
let folder: string;
let root: string;

beforeEach(async () => {
  folder = await realpath(await tempFolder("volume"));
  root = join(folder, "data");
  await mkdir(join(root, "notes/old"), { recursive: true });
  await writeFile(join(root, "notes/a.txt"), "hello");
  await writeFile(join(folder, "secret"), "of the sandbox");
});

async function say(script: string, path: string, ...args: string[]): Promise<string> {
  const { stdout } = await run("/bin/sh", ["-c", script, "sh", root, path, ...args]);
  return stdout;
}

const failure = (script: string, path: string, ...args: string[]) =>
  say(script, path, ...args).then(
    () => undefined,
    ({ code }: { code: number }) => code,
  );

test("entries are told with their numbers, times and targets, and lists as deep as asked for", async () => {
  await symlink("a.txt", join(root, "notes/link"));
  const { uid, gid, mtimeMs } = await stat(join(root, "notes/a.txt"));
  const [entry] = entriesIn(await say(scripts.STAT, "/notes/a.txt"), root, "/");
  expect(entry).toMatchObject({ name: "a.txt", type: "file", path: "/notes/a.txt", size: 5, uid, gid });
  expect(Math.abs(Date.parse(entry?.mtime ?? "") - mtimeMs)).toBeLessThan(2);
  expect(entriesIn(await say(scripts.STAT, "/"), root, "/")).toMatchObject([
    { name: "/", type: "directory", path: "/" },
  ]);
  expect(entriesIn(await say(scripts.STAT, "/notes/link"), root, "/")).toMatchObject([
    { type: "symlink", target: "a.txt" },
  ]);
  const list = async (depth: string) => {
    const said = await say(scripts.LIST, "/", depth);
    const end = said.indexOf("\0");
    return entriesIn(said.slice(end + 1), said.slice(0, end), "/").map(({ path }) => path);
  };
  expect(await list("1")).toEqual(["/notes"]);
  expect((await list("2")).toSorted()).toEqual(["/notes", "/notes/a.txt", "/notes/link", "/notes/old"]);
});

test.each(ODD)("the name %j is a name, and nothing else", async (name) => {
  await writeFile(join(root, name), "x");
  expect(entriesIn(await say(scripts.STAT, `/${name}`), root, "/")).toMatchObject([{ name }]);
  expect(await say(scripts.MAY_WRITE, `/${name}`, "1")).toBe(join(root, name));
  expect(await say(scripts.CHANGE, `/${name}`, "", "", "600")).toContain("\x00600\0");
  expect((await stat(join(root, name))).mode & 0o777).toBe(0o600);
});

describe("a link does not lead out of the volume", () => {
  beforeEach(async () => {
    await symlink("../secret", join(root, "out"));
    await symlink("..", join(root, "up"));
    await symlink("notes", join(root, "within"));
  });

  test.each(["/out", "/up/secret", "/up/new", "/up"])("%s", async (path) => {
    for (const script of [scripts.FIND_FILE, scripts.MAY_WRITE, scripts.MAY_MAKE])
      expect([2, 3, 4, 6], path).toContain(await failure(script, path));
    if (path === "/up/secret")
      for (const script of [scripts.STAT, scripts.MAY_REMOVE, scripts.CHANGE])
        expect(await failure(script, path, "1", "1", "600")).toBe(3);
    if (path === "/up") expect(await failure(scripts.LIST, path, "9")).toBe(3);
    expect(await readFile(join(folder, "secret"), "utf8")).toBe("of the sandbox");
  });

  test("but it leads to what is in it, and is itself what is removed", async () => {
    expect(await say(scripts.FIND_FILE, "/within/a.txt")).toBe(join(root, "notes/a.txt"));
    expect(await say(scripts.MAY_REMOVE, "/out")).toBe(join(root, "out"));
  });
});

test("what may be written and made, with force and without", async () => {
  expect(await failure(scripts.MAY_WRITE, "/notes/a.txt", "")).toBe(4);
  expect(await failure(scripts.MAY_WRITE, "/notes", "1")).toBe(4);
  expect(await failure(scripts.MAY_WRITE, "/gone/a.txt", "1")).toBe(2);
  expect(await failure(scripts.MAY_MAKE, "/notes", "")).toBe(4);
  expect(await say(scripts.MAY_MAKE, "/notes", "1")).toBe(join(root, "notes"));
  expect(await failure(scripts.MAY_MAKE, "/notes/a.txt", "1")).toBe(4);
  expect(await failure(scripts.MAY_MAKE, "/x/y", "")).toBe(2);
  expect(await say(scripts.MAY_MAKE, "/x/y", "1")).toBe(join(root, "x/y"));
  expect(await failure(scripts.MAY_REMOVE, "/")).toBe(3);
  expect(await failure(scripts.LIST, "/notes/a.txt", "1")).toBe(5);
});

test.each(["", "x", "f\0", "f\0".repeat(9), "f\0x\x00644\x001\x001\x001\x001\x001\0/data/a\0\0"])(
  "what makes no sense is not passed on: %j",
  (said) => {
    if (said === "") expect(() => entriesIn("x", "/data", "/")).toThrow(/no sense/);
    else expect(() => entriesIn(said, "/data", "/")).toThrow(/no sense/);
  },
);
