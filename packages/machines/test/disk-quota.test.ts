/** An app that may take only so much of the disk. */
import { link, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { imageFolder } from "@hibernaut/images/open";
import { beforeEach, describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { refusedGrowth, takenBytes } from "../src/disk-quota.ts";
import { shopForEach } from "./shop.ts";

const MB = 1024 * 1024;
const FULL = { code: "failed_precondition", details: expect.objectContaining({ app_name: "shop", quota_mb: 1100 }) };

const shop = shopForEach({ diskQuotaMb: 1100 });

/** Writes to the disk of a volume, as its machine would. */
const fill = (id: string, megabytes: number) =>
  writeFile(join(shop.world.folder, "volumes", id, "data.ext4"), Buffer.alloc(megabytes * MB, "x"), { flag: "r+" });

test("what is asked for counts in full, and what is there as it takes space", async () => {
  const volume = await shop.volumes.create("shop", { name: "data", sizeGb: 1 });
  await expect(shop.volumes.create("shop", { name: "more", sizeGb: 2 })).rejects.toMatchObject(FULL);
  expect(() => shop.volumes.extend("shop", volume.id, 3)).toThrow(expect.objectContaining(FULL));
  // A volume that nobody has written to takes next to nothing.
  const other = await shop.volumes.create("shop", { name: "more", sizeGb: 1 });
  await fill(volume.id, 80);
  await expect(shop.volumes.create("shop", { name: "third", sizeGb: 1 })).rejects.toMatchObject({
    ...FULL,
    message: expect.stringMatching(
      /^App shop uses 8\d MB of disk and asks for 1024 MB more, and its quota is 1100 MB\. /,
    ),
  });
  await shop.volumes.destroy("shop", volume.id);
  await shop.volumes.create("shop", { name: "third", sizeGb: 1 });
  expect(shop.volumes.list("shop").map(({ id }) => id)).toContain(other.id);
});

test("the images of its machines count for each app that uses them, once", async () => {
  shop.platform.apps.create("mail");
  const images = async (app: string) => {
    const { record } = await shop.machines.create(app, { config: SMALL, skipLaunch: true });
    return imageFolder(shop.world.folder, record.imageDigest);
  };
  const [image, again, mails] = [await images("shop"), await images("shop"), await images("mail")];
  expect([again, mails]).toEqual([image, image]);
  await mkdir(image, { recursive: true });
  await writeFile(join(image, "rootfs.squashfs"), Buffer.alloc(80 * MB, "x"));
  for (const app of ["shop", "mail"])
    await expect(shop.volumes.create(app, { name: "data", sizeGb: 1 })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(new RegExp(`^App ${app} uses 8\\d MB of disk`)),
    });
  shop.platform.apps.create("new");
  await shop.volumes.create("new", { name: "data", sizeGb: 1 });
});

describe("an app at its quota", () => {
  let volume: string;
  let id: string;
  beforeEach(async () => {
    ({ id: volume } = await shop.volumes.create("shop", { name: "data", sizeGb: 1 }));
    id = await shop.run();
    await fill(volume, 30);
    await shop.restart({ diskQuotaMb: 40 });
  });

  test("creates no machine, starts none cold, and takes no snapshot of a volume", async () => {
    const full = { code: "failed_precondition", message: expect.stringContaining("its quota is 40 MB") };
    await expect(shop.machines.create("shop", { config: SMALL })).rejects.toMatchObject(full);
    await expect(shop.volumes.snapshot("shop", volume)).rejects.toMatchObject(full);
    expect(await shop.volumes.listSnapshots("shop", volume)).toEqual([]);
    await shop.stop(id);
    expect(() => shop.machines.start("shop", id)).toThrow(expect.objectContaining(full));
  });

  test("keeps what runs, and a machine that sleeps resumes", async () => {
    await shop.suspend(id);
    await shop.start(id);
    expect(shop.record(id).lastBoot?.kind).toBe("resume");
  });

  test("does not keep other apps from anything", async () => {
    await shop.restart();
    shop.platform.apps.create("other");
    await shop.volumes.create("other", { name: "data", sizeGb: 1 });
  });
});

test("without a quota nothing is refused; the rule is exact", () => {
  expect(refusedGrowth({ app: "a", used: 1e15, growth: 1e15 }, 0)).toBeUndefined();
  expect(refusedGrowth({ app: "a", used: 60 * MB, growth: 40 * MB }, 100)).toBeUndefined();
  expect(refusedGrowth({ app: "a", used: 60 * MB, growth: 40 * MB + 1 }, 100)).toMatchObject({
    details: { app_name: "a", quota_mb: 100, used_mb: 60, needed_mb: 41 },
  });
});

test("a file with two names counts once, and one without content hardly at all", async () => {
  const folder = await tempFolder();
  await mkdir(join(folder, "snapshots"));
  await writeFile(join(folder, "memory"), Buffer.alloc(4 * MB, "x"));
  await link(join(folder, "memory"), join(folder, "snapshots", "memory"));
  const taken = takenBytes([folder, join(folder, "no-such-file")]);
  expect(taken).toBeGreaterThanOrEqual(4 * MB);
  expect(taken).toBeLessThan(5 * MB);
});
