/** Directories that are lost with the data directory, whatever they are called. */
import { chmod, mkdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { requireApart, requireElsewhere } from "../../src/targets/elsewhere.ts";
import { Home } from "./helpers.ts";

/** A host with a data directory, and a disk for backups. */
async function host() {
  const root = await tempFolder("host");
  const [data, usb] = [join(root, "srv", "hibernaut"), join(root, "mnt", "usb")];
  for (const folder of [join(data, "volumes"), usb]) await mkdir(folder, { recursive: true });
  return { root, data, usb };
}
const REFUSED = { code: "invalid_argument", message: expect.stringMatching(/are in each other/) };

describe("a target is refused", () => {
  test("in the data directory or around it, also where it is not there yet, or through links", async () => {
    const { root, data, usb } = await host();
    await symlink(data, join(usb, "link"));
    await symlink(join(root, "srv"), join(usb, "around"));
    for (const path of [
      ...[data, join(data, "a"), join(data, "not", "there", "yet"), join(root, "srv"), root],
      ...[join(usb, "link"), join(usb, "link", "not", "there"), join(usb, "around")],
    ])
      await expect(requireApart(path, data), path).rejects.toMatchObject(REFUSED);
  });

  test("in the data directory, when that is named by a link, or has its volumes on another disk", async () => {
    const { root, data, usb } = await host();
    await symlink(data, join(root, "data"));
    await expect(requireApart(join(data, "x"), join(root, "data"))).rejects.toMatchObject(REFUSED);
    await rm(join(data, "volumes"), { recursive: true });
    await mkdir(join(usb, "volumes"));
    await symlink(join(usb, "volumes"), join(data, "volumes"));
    await expect(requireApart(join(usb, "volumes", "backups"), data)).rejects.toMatchObject(REFUSED);
    await requireApart(join(usb, "backups"), data);
  });
});

test("a directory next to the data directory is not in it, although its name begins like it", async () => {
  const { data, usb } = await host();
  await requireElsewhere(`${data}-backups`, data);
  await requireElsewhere(join(usb, "hibernaut"), data);
});

test.skipIf(process.getuid?.() === 0)("a place that may not be looked at is not taken for one elsewhere", async () => {
  const { data, usb } = await host();
  await chmod(usb, 0o000);
  onTestFinished(() => chmod(usb, 0o700));
  await expect(requireApart(join(usb, "a", "b"), data)).rejects.toMatchObject({ code: "failed_precondition" });
});

test("a target that a link leads into the data directory since it was added fails the next backup", async () => {
  const home = await Home.open();
  onTestFinished(() => home.close());
  const { url } = await home.add();
  const moved = join(home.world.folder, "moved");
  await rename(url, moved).catch(async (error: NodeJS.ErrnoException) => {
    // The data directory may be in memory, and then nothing moves there.
    if (error.code !== "EXDEV") throw error;
    await rm(url, { recursive: true });
    await mkdir(moved);
  });
  await symlink(moved, url);
  expect(await home.backUp()).toMatchObject({ state: "failed", error: { code: "invalid_argument" } });
  expect(home.events()).toEqual(["backup.failed"]);
});
