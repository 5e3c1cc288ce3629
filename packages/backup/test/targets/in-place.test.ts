/** Large files are read by restic where they are, and come back as they were. */
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFile, open, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { Piece } from "../../src/piece.ts";
import { isReadInPlace } from "../../src/targets/in-place.ts";
import { type Manifest, parseManifest } from "../../src/targets/manifest.ts";
import type { PieceSums } from "../../src/targets/piece-sums.ts";
import type { Repository } from "../../src/targets/repository.ts";
import { SetWriter } from "../../src/targets/set-writer.ts";
import { tarHeader, tarOfFiles } from "../../src/targets/tar-of-files.ts";
import { Home, patient, RESTIC, restic, restore, run, volumePiece } from "./helpers.ts";

const MB = 1024 ** 2;
/** The smallest file that restic reads by itself, in bytes. */
const LARGE = 128 * MB;

describe("a file is read in place", () => {
  const full = (size: number) => ({ size, blocks: size / 512 });
  test.each([
    ["if it is large", "volumes/1/data.ext4", full(LARGE), true],
    ["not if it is small", "volumes/1/data.ext4", full(LARGE - 512), false],
    [
      "not if much of it is holes, which restic would not restore",
      "volumes/1/data.ext4",
      { size: LARGE, blocks: 1 },
      false,
    ],
    ["not if its path does not fit into the header of an archive", "v".repeat(101), full(LARGE), false],
  ])("%s", (_, path, seen, expected) => expect(isReadInPlace(path, seen)).toBe(expected));
});

describe("the archive of files that were stored without one", () => {
  test("is what tar extracts", async () => {
    const folder = await tempFolder("extracted");
    const content = new Map([
      ["volumes/1/data.ext4", randomBytes(1000)],
      ["machines/1/memory", randomBytes(1024)],
    ]);
    const files = [...content].map(([path, { length }]) => ({
      path,
      at: "/",
      bytes: length,
      mode: 0o600,
      mtime: 1000,
    }));
    const archive = tarOfFiles(files, async function* ({ path }) {
      yield content.get(path) as Buffer;
    });
    execFileSync("tar", ["-x", "-C", folder], { input: Buffer.concat(await Array.fromAsync(archive)) });
    for (const [path, bytes] of content) expect(await readFile(join(folder, path))).toEqual(bytes);
    const { mode, mtimeMs } = await stat(join(folder, "machines/1/memory"));
    expect([mode & 0o777, mtimeMs]).toEqual([0o600, 1_000_000]);
  });

  test("says the size of a file of more than 8 GB, too", () => {
    const header = tarHeader({ path: "disk", bytes: 20 * 1024 ** 3, mode: 0o600, mtime: 0 });
    // It complains that the content is missing.
    const list = spawnSync("tar", ["--list", "--verbose", "--numeric-owner"], { input: header }).stdout;
    expect(list.toString()).toContain(" 21474836480 ");
  });
});

test("a large file that changes while restic reads it is not in the set, and the backup continues", async () => {
  const folder = await tempFolder("piece");
  const file = join(folder, "disk");
  await writeFile(file, Buffer.alloc(LARGE, 1));
  const piece = volumePiece(folder);
  const lent = new AbortController();
  const store: Repository["store"] = async ({ source }) => {
    for await (const _ of source);
    return { snapshot: "1", bytes: 1, sha256: "", added: 1 };
  };
  const storeInPlace: Repository["storeInPlace"] = async ({ files }) => {
    expect(files).toMatchObject([{ at: file, bytes: LARGE }]);
    await appendFile(file, "more");
    return { snapshot: "2", bytes: LARGE, added: LARGE };
  };
  const writer = new SetWriter({
    ...{ set: "s", platform: "p", version: "1", host: "h", at: "", stored: [], verify: "sample" },
    repository: { store, storeInPlace } as Repository,
    sums: {} as PieceSums,
  });
  await writer.take({ ...piece, lent }, patient());
  expect([lent.signal.aborted, writer.added]).toEqual([true, 0]);
  await truncate(file, LARGE);
  // What is not lent must not change.
  await expect(writer.take(piece as Piece, patient())).rejects.toThrow("file changed as restic read it");
});

describe("with restic", () => {
  let home: Home;
  let target: Awaited<ReturnType<Home["add"]>>;
  let disk: string;
  beforeEach(async () => {
    home = await Home.open();
    target = await home.add();
    home.platform.apps.create("shop");
    const { id } = await home.platform.volumes.create("shop", { name: "data", sizeGb: 1 });
    disk = join("volumes", id, "data.ext4");
    // The same megabyte over and over: it is read as any other, and stored once.
    const megabyte = randomBytes(MB);
    await writeFile(join(home.world.folder, disk), Buffer.concat(Array.from({ length: LARGE / MB }, () => megabyte)));
  });
  afterEach(() => home.close());

  async function manifest(): Promise<Manifest> {
    const snapshots = JSON.parse(await restic(target.url, target.key, "snapshots", "--json", "--tag", "kind=manifest"));
    const parsed = parseManifest(await restic(target.url, target.key, "dump", snapshots.at(-1).id, "/manifest.json"));
    if (typeof parsed === "string") throw new Error(parsed);
    return parsed;
  }
  const forms = async () =>
    (await manifest()).pieces
      .filter(({ kind }) => kind === "volume")
      .map(({ files }) => files?.map(({ path }) => path));

  test("a large volume is stored as a file, and restored with its content at each time", async () => {
    expect(await home.backUp()).toMatchObject({ state: "complete" });
    expect(await forms()).toEqual([undefined, [disk]]);
    const before = await readFile(join(home.world.folder, disk));
    const again = await home.backUp();
    expect(again.added, "nothing of it is stored a second time").toBeLessThan(MB);
    await using file = await open(join(home.world.folder, disk), "r+");
    await file.write(randomBytes(MB), 0, MB, 5 * MB);
    await file.sync();
    expect((await home.backUp()).added).toBeGreaterThan(MB);
    const after = await readFile(join(home.world.folder, disk));
    expect((await readFile(join(await restore(target), disk))).equals(after)).toBe(true);
    const earlier = await restore(target, { set: again.set ?? "" });
    expect((await readFile(join(earlier, disk))).equals(before)).toBe(true);
    expect(await home.check(true)).toMatchObject({ error: null });
  });

  test("a backup that was made before there were such files is restored", { tags: "again" }, async () => {
    await home.stop();
    await home.start({ verify: "pieces" });
    expect(await home.backUp()).toMatchObject({ state: "complete" });
    expect(await forms(), "what is read back and compared as a whole is an archive").toEqual([undefined]);
    // The rest of such a set is as it has always been.
    const old = { ...(await manifest()), format: 1, set: "of-an-earlier-version" };
    const folder = await tempFolder("manifest");
    await writeFile(join(folder, "manifest.json"), JSON.stringify(old));
    const tags = ["hibernaut", `set=${old.set}`, `platform=${old.platform}`, "kind=manifest"].flatMap((tag) => [
      "--tag",
      tag,
    ]);
    const store = `"$0" backup --stdin --stdin-filename manifest.json "$@" < manifest.json`;
    const env = { ...process.env, RESTIC_REPOSITORY: target.url, RESTIC_PASSWORD: target.key };
    await run("sh", ["-c", store, RESTIC, ...tags], { cwd: folder, env });
    const restored = await restore(target, { set: old.set });
    const now = await readFile(join(home.world.folder, disk));
    expect((await readFile(join(restored, disk))).equals(now)).toBe(true);
  });
});
