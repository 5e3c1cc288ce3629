/** Manifests that are kept on the disk of the platform. */
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { ManifestCache } from "../../src/targets/manifest-cache.ts";

const ID = (digit: string) => digit.repeat(64);
const AT = "2026-11-27T03:00:00.000Z";

function manifest(set: string): string {
  const pieces = [
    { kind: "database", name: "database", snapshot: ID("d"), bytes: 1, sha256: ID("e"), volumes: [] as string[] },
  ];
  const about = { format: 1, set, platform: "ours", version: "0.1.0", host: "h", at: AT, endedAt: AT, added: 0 };
  return `${JSON.stringify({ ...about, withoutMemory: [], verified: { at: AT, read: "sample" }, pieces })}\n`;
}

test("a manifest is what was read, and one that the disk has damaged since is read from the target again", async () => {
  const folder = join(await tempFolder("manifests"), "cache");
  const cache = new ManifestCache(folder);
  expect(await cache.get(ID("a"))).toBe(undefined);
  await cache.put(ID("a"), manifest("set-a"));
  expect(await new ManifestCache(folder).get(ID("a"))).toMatchObject({ set: "set-a" });
  const text = await readFile(join(folder, ID("a")), "utf8");
  for (const damaged of [text.replace("set-a", "set-b"), text.slice(0, -10), "", "\n"]) {
    await writeFile(join(folder, ID("a")), damaged);
    expect(await cache.get(ID("a"))).toBe(undefined);
  }
});

test("those of snapshots that are gone are deleted, and so are the first ones when they take too much room", async () => {
  const folder = join(await tempFolder("manifests"), "cache");
  const cache = new ManifestCache(folder);
  await cache.bound();
  for (const [index, digit] of ["a", "b", "c"].entries()) {
    await cache.put(ID(digit), manifest(`set-${digit}`));
    await utimes(join(folder, ID(digit)), index, index);
  }
  await cache.drop([ID("c"), ID("f")]);
  expect(await readdir(folder)).toEqual([ID("a"), ID("b")]);
  await cache.bound(manifest("set-a").length + 100);
  expect(await readdir(folder)).toEqual([ID("b")]);
});

test("a disk that takes no copy fails nothing", async () => {
  const file = join(await tempFolder("manifests"), "not-a-directory");
  await writeFile(file, "");
  const cache = new ManifestCache(file);
  await cache.put(ID("a"), manifest("set-a"));
  expect(await cache.get(ID("a"))).toBe(undefined);
});

test("nothing that a target says leads to another file", async () => {
  const cache = new ManifestCache(join(await tempFolder("manifests"), "cache"));
  await expect(cache.get("../../secrets.key")).rejects.toThrow("is not the id of a snapshot");
});
