/** What is stored once because it never changes: images, bundles, templates and snapshots of volumes. */
import { mkdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { ContentSum, StoredPiece } from "../../src/targets/manifest.ts";
import { PieceSums } from "../../src/targets/piece-sums.ts";
import { reuseOf } from "../../src/targets/reuse.ts";
import { patient } from "./helpers.ts";

const DAY_MS = 24 * 60 * 60_000;
const NAME = "image-1";
const MONDAY = "2026-11-23T03:00:00.000Z";
const TUESDAY = "2026-11-24T03:00:00.000Z";

const content = (sha256: string, modified = MONDAY): ContentSum => ({ sha256, modified });
const stored = (snapshot: string, sum?: ContentSum): StoredPiece => ({
  ...{ kind: "image", name: NAME, snapshot, bytes: 1, sha256: "", volumes: [] },
  ...(sum !== undefined && { content: sum }),
});

describe("a stored image", () => {
  test("is used again while it is what is on the disk, the latest copy first", () => {
    const earlier = [stored("old", content("good")), stored("new", content("good"))];
    expect(reuseOf(content("good"), earlier)).toMatchObject({ same: { snapshot: "new" }, changed: false });
  });

  test("that was pulled again is stored again, without an alarm", () => {
    expect(reuseOf(content("other", TUESDAY), [stored("a", content("good"))])).toEqual({
      same: undefined,
      changed: false,
    });
  });

  test("that nobody has written to since, and that is another one, is told as long as both are there", () => {
    const earlier = [stored("a", content("good"))];
    expect(reuseOf(content("rotten"), earlier)).toEqual({ same: undefined, changed: true });
    const both = [...earlier, stored("b", content("rotten"))];
    expect(reuseOf(content("rotten"), both)).toMatchObject({ same: { snapshot: "b" }, changed: true });
  });

  test("of an earlier release, of which nobody knows what it has, is stored again", () => {
    expect(reuseOf(content("good"), [stored("a")])).toEqual({ same: undefined, changed: false });
  });
});

describe("what is on the disk", () => {
  async function image() {
    const folder = await tempFolder("sums");
    await mkdir(join(folder, "images", "1"), { recursive: true });
    const disk = join(folder, "images", "1", "rootfs.squashfs");
    await writeFile(disk, "whole");
    const piece = { name: NAME, folder, paths: [join("images", "1")] };
    let now = Date.parse(MONDAY);
    const sums = () => PieceSums.open({ file: join(folder, "cache", "sums.json"), now: () => new Date(now) });
    const pass = (ms: number) => void (now += ms);
    return { folder, disk, piece, sums, pass };
  }
  /** As a disk does it: the file has the times that it had. */
  async function rot(disk: string): Promise<void> {
    const { atime, mtime } = await stat(disk);
    await writeFile(disk, "rot..");
    await utimes(disk, atime, mtime);
  }

  test("is read once a month, and then damage is seen of which no time of a file tells", async () => {
    const { disk, piece, sums, pass } = await image();
    // As a file has it that is kept: a whole number of milliseconds.
    await utimes(disk, new Date(MONDAY), new Date(MONDAY));
    const first = await sums();
    expect(await first.noted(piece)).toBe(undefined);
    const whole = await first.read(piece, patient());
    await first.save();
    await rot(disk);
    pass(29 * DAY_MS);
    const second = await sums();
    expect(await second.noted(piece)).toEqual(whole);
    await second.save();
    pass(2 * DAY_MS);
    const third = await sums();
    expect(await third.noted(piece)).toBe(undefined);
    const rotten = await third.read(piece, patient());
    expect(rotten.modified).toBe(whole.modified);
    expect(rotten.sha256).not.toBe(whole.sha256);
  });

  test("is read again once a file is another one, and when nobody can say since when it was known", async () => {
    const { disk, piece, sums, pass } = await image();
    const first = await sums();
    const whole = await first.read(piece, patient());
    await first.save();
    pass(-DAY_MS);
    expect(await (await sums()).noted(piece), "a clock that was set back").toBe(undefined);
    pass(DAY_MS);
    await rm(disk);
    await writeFile(disk, "whole");
    const second = await sums();
    expect(await second.noted(piece)).toBe(undefined);
    expect((await second.read(piece, patient())).sha256, "the content counts alone").toBe(whole.sha256);
  });

  test("is read again when the notes are damaged, and notes of what is gone are dropped", async () => {
    const { folder, piece, sums } = await image();
    const first = await sums();
    await first.read(piece, patient());
    await first.save();
    await (await sums()).save();
    expect(await (await sums()).noted(piece)).toBe(undefined);
    await writeFile(join(folder, "cache", "sums.json"), "{ half");
    expect(await (await sums()).noted(piece)).toBe(undefined);
  });
});
