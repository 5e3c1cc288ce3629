/** The guest bundles in a data directory. */
import { mkdir, readdir, readFile, rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BundleStore } from "../src/bundles.ts";

test("a copy that a power cut emptied is named, with advice that works", async () => {
  const folder = await tempFolder("bundles");
  const built = join(folder, "built");
  await mkdir(built);
  await writeFile(join(built, "bundle.json"), '{"version":"one","image":"vmlinux","protocol":2}');
  await BundleStore.open(folder, built);
  const copy = join(folder, "bundles", "one");
  await truncate(join(copy, "bundle.json"), 0);
  await expect(BundleStore.open(folder, built)).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/^The guest bundle in \S+\/bundles\/one is damaged: .* Move the directory away/),
  });
  await rename(copy, join(folder, "away"));
  const { current } = await BundleStore.open(folder, built);
  expect(current).toMatchObject({ version: "one", protocol: 2 });
  expect(await readdir(join(folder, "bundles"))).toEqual(["one"]);
  expect(await readFile(join(copy, "bundle.json"), "utf8")).toContain("one");
});

test.each(["{}", "[]", '{"version":""}', "{"])("a bundle that says %s is damaged", async (text) => {
  const folder = await tempFolder("bundles");
  await writeFile(join(folder, "bundle.json"), text);
  await expect(BundleStore.open(folder, folder)).rejects.toThrow(/is damaged: its bundle\.json is not readable/);
});
