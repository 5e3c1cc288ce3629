/**
 * Images at a real repository, whose copies here or there are damaged, and what a backup costs when there are many.
 *
 * @module-tag again
 */
import { chmod, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { Home, patient, RESTIC, restore } from "./helpers.ts";

const DIGEST = "ab".repeat(32);
const IMAGE = `image-${DIGEST}`;
const MONTH_MS = 31 * 24 * 60 * 60_000;

let home: Home;

beforeEach(async () => {
  home = await Home.open();
});
afterEach(() => home.close());

const diskIn = (data: string) => join(data, "images", DIGEST, "rootfs.squashfs");
const restoredImage = async (data: string) => readFile(diskIn(data), "utf8");

async function writeImage(content: string): Promise<void> {
  const disk = diskIn(home.world.folder);
  await mkdir(join(disk, ".."), { recursive: true });
  await rm(disk, { force: true });
  await writeFile(disk, content);
}

test("an image that was damaged when it was first stored is stored again once it was pulled again", async () => {
  await writeImage("damaged");
  const target = await home.add();
  const { set: first } = await home.backUp();
  await writeImage("whole");
  expect(await home.backUp()).toMatchObject({ state: "complete", changed: [] });
  expect(await restoredImage(await restore(target))).toBe("whole");
  expect(await restoredImage(await restore(target, { set: first ?? "" })), "no set is changed").toBe("damaged");
});

test("an image that the disk has damaged since is told, and the copy that was good is still there", async () => {
  await writeImage("whole");
  const disk = diskIn(home.world.folder);
  const { atime, mtime } = await stat(disk);
  await utimes(disk, atime, mtime);
  const target = await home.add();
  const { set: good } = await home.backUp();
  await writeFile(disk, "rot..");
  await utimes(disk, atime, mtime);
  await home.stop();
  await home.start({ now: () => new Date(Date.now() + MONTH_MS) });
  expect(await home.backUp()).toMatchObject({ state: "complete", changed: [IMAGE] });
  expect(home.events()).toEqual(["backup.complete", "backup.content_changed", "backup.complete"]);
  expect(await restoredImage(await restore(target, { set: good ?? "" }))).toBe("whole");
  expect((await home.backUp()).changed, "told until someone has done something").toEqual([IMAGE]);
  await writeImage("whole");
  expect((await home.backUp()).changed).toEqual([]);
  expect(await restoredImage(await restore(target))).toBe("whole");
});

/** A restic that notes what it is asked. */
async function notedRestic() {
  const folder = await tempFolder("noted");
  const [program, log] = [join(folder, "restic"), join(folder, "log")];
  await writeFile(program, `#!/bin/sh\necho "$*" >> ${log}\nexec ${RESTIC} "$@"\n`);
  await chmod(program, 0o755);
  const calls = async () => (await readFile(log, "utf8")).trim().split("\n");
  return {
    program,
    calls: async (word: string) => (await calls()).filter((call) => ` ${call} `.includes(` ${word} `)),
    forget: () => writeFile(log, ""),
  };
}

test("a platform that starts again reads no manifest a second time, and lists a repository three times a backup", async () => {
  const noted = await notedRestic();
  await home.stop();
  await home.start({ program: noted.program });
  const target = await home.add({ keep: "7d" });
  for (let night = 0; night < 3; night += 1) await home.backUp();
  await home.stop();
  await noted.forget();
  await home.start({ program: noted.program });
  await home.backUp();
  expect(await noted.calls("snapshots")).toHaveLength(3);
  // What this backup has just stored is read back, as nobody has read that before.
  const read = (await noted.calls("dump")).filter((call) => call.includes("/manifest.json"));
  expect(new Set(read).size).toBe(1);
  await noted.forget();
  expect(await home.targets.sets("disk", patient())).toHaveLength(1);
  expect(await noted.calls("dump")).toEqual([]);
  const cache = join(home.world.folder, "backup-cache", "manifests");
  expect(await readdir(cache), "those of deleted sets are gone").toHaveLength(1);
  await restore(target);
});
