/** Which machine has a volume, and for how long, on the fake hypervisor. */
import { existsSync } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MachineConfig } from "@hibernaut/domain/config";
import { describe, expect, test } from "vitest";
import { shopForEach } from "../../machines/test/shop.ts";
import { FastVolumeFiles, SMALL } from "../../platform/test/helpers/fake-world.ts";

const DATA: MachineConfig = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
const GB = 1024 ** 3;

const shop = shopForEach();

const disk = (id: string) => join(shop.world.folder, "volumes", id, "data.ext4");
const volumeOf = (id: string) => shop.record(id).config.mounts?.[0]?.volume ?? "";

async function destroyed(id: string): Promise<void> {
  shop.machines.destroy("shop", id, { force: true });
  await shop.reach(id, "destroyed");
}

describe("a machine that asks for a volume by name", () => {
  test("gets a new volume of that size, and its guest a disk and a mount", async () => {
    const id = await shop.run({ mounts: [{ source: "data", path: "/data", size_gb: 3 }] });
    const volume = volumeOf(id);
    expect(shop.volumes.list("shop")).toMatchObject([
      { id: volume, name: "data", sizeGb: 3, state: "created", machineId: id, snapshotRetention: 5 },
    ]);
    expect(shop.record(id).config.mounts).toEqual([{ volume, name: "data", path: "/data", size_gb: 3 }]);
    expect((await stat(disk(volume))).size).toBe(3 * GB);
    const [process] = shop.host.of(id);
    expect(process?.spec.volumes).toEqual([{ serial: volume, file: disk(volume) }]);
    expect(process?.guest.volumes).toEqual([`${volume} /data`]);
  });

  test("gets the oldest free volume before a new one is made", async () => {
    const [old] = [
      await shop.volumes.create("shop", { name: "data", sizeGb: 2 }),
      await shop.volumes.create("shop", { name: "data" }),
    ];
    await shop.volumes.create("shop", { name: "other" });
    expect(volumeOf(await shop.run(DATA))).toBe(old.id);
    expect(shop.volumes.list("shop")).toHaveLength(3);
  });

  test("never shares it: machines created at once get one each", async () => {
    const free = await shop.volumes.create("shop", { name: "data" });
    const made = await Promise.all(Array.from({ length: 8 }, () => shop.machines.create("shop", { config: DATA })));
    const ids = made.map(({ record }) => record.config.mounts?.[0]?.volume);
    expect(new Set(ids).size).toBe(8);
    expect(ids).toContain(free.id);
    await Promise.all(made.map(({ record }) => shop.reach(record.id, "running")));
  });

  test("gets two volumes when it asks twice", async () => {
    const mounts = ["/one", "/two"].map((path) => ({ volume: "data", path }));
    await shop.run({ mounts });
    expect(shop.volumes.list("shop")).toHaveLength(2);
  });
});

describe("a volume", () => {
  test("stays with its machine through suspend, stop and update, and outlives it", async () => {
    const id = await shop.run(DATA);
    const volume = volumeOf(id);
    await writeFile(disk(volume), "kept");
    await shop.suspend(id);
    expect(shop.volumes.get("shop", volume).machineId).toBe(id);
    await shop.stop(id);
    await shop.machines.update("shop", id, { ...DATA, env: { A: "1" } });
    await shop.reach(id, "settled");
    expect(volumeOf(id)).toBe(volume);
    await shop.machines.update("shop", id, shop.record(id).config);
    await shop.reach(id, "settled");
    expect(volumeOf(id)).toBe(volume);
    await destroyed(id);
    expect(shop.volumes.get("shop", volume).machineId).toBeNull();
    expect(volumeOf(await shop.run(DATA))).toBe(volume);
    expect(shop.volumes.list("shop")).toHaveLength(1);
  });

  test("is free for another machine only after an update without it", async () => {
    const id = await shop.run(DATA);
    const volume = volumeOf(id);
    const byId = { ...SMALL, mounts: [{ volume, path: "/data" }] };
    await expect(shop.machines.create("shop", { config: byId })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`it belongs to machine ${id}`),
    });
    await shop.update(id, { mounts: [] });
    await shop.reach(id, "running");
    expect(shop.host.of(id)[0]?.spec.volumes).toEqual([]);
    expect(volumeOf(await shop.run(byId))).toBe(volume);
  });

  test("cannot be destroyed while a machine has it, and is then destroyed with its snapshots", async () => {
    const id = await shop.run(DATA);
    const volume = volumeOf(id);
    const refused = { code: "failed_precondition", details: { volume_id: volume, machine_id: id } };
    await expect(shop.volumes.destroy("shop", volume)).rejects.toMatchObject(refused);
    await shop.stop(id);
    await shop.volumes.snapshot("shop", volume);
    await expect(shop.volumes.destroy("shop", volume)).rejects.toMatchObject(refused);
    await destroyed(id);
    await shop.volumes.destroy("shop", volume);
    expect(shop.volumes.list("shop")).toEqual([]);
    expect(existsSync(join(shop.world.folder, "volumes", volume))).toBe(false);
  });

  test("keeps its app from being deleted, unless force is used", async () => {
    await shop.volumes.create("shop", { name: "data" });
    await expect(shop.platform.apps.delete("shop")).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("1 volume(s)"),
    });
    await shop.run(DATA);
    await shop.platform.apps.delete("shop", { force: true });
    expect(shop.world.store.volumes.list()).toEqual([]);
  });

  test("that was extended gets its new size at the next cold start, not at a resume", async () => {
    const id = await shop.run(DATA);
    const volume = volumeOf(id);
    const size = async () => (await stat(disk(volume))).size / GB;
    expect(shop.volumes.extend("shop", volume, 2)).toMatchObject({ volume: { sizeGb: 2 }, needsRestart: true });
    await shop.suspend(id);
    expect(shop.volumes.extend("shop", volume, 3).needsRestart).toBe(true);
    await shop.start(id);
    expect(await size()).toBe(1);
    await shop.stop(id);
    expect(shop.volumes.extend("shop", volume, 4).needsRestart).toBe(false);
    await shop.start(id);
    expect(await size()).toBe(4);
    expect(() => shop.volumes.extend("shop", volume, 3)).toThrowError(/cannot be made smaller/);
  });
});

test.each([
  ["no volume", { path: "/data" }, /`volume` is missing/],
  ["two that differ", { volume: "a", source: "b", path: "/data" }, /differ/],
  ["a relative path", { volume: "a", path: "data" }, /not a valid path for a volume.*absolute path/],
  ["the root", { volume: "a", path: "/" }, /not a valid path for a volume/],
  ["a way up", { volume: "a", path: "/data/../etc" }, /not a valid path for a volume.*without \., \.\. or/],
  ["a directory of the machine's", { volume: "a", path: "/proc/x" }, /the machine itself/],
  ["an invalid name", { volume: "No Name", path: "/data" }, /not a valid name for a volume/],
  ["an id that there is not", { volume: "vol_0123456789abcdef", path: "/data" }, /no volume/],
])("a mount with %s is refused, and nothing is made", async (_what, mount, message) => {
  await expect(shop.machines.create("shop", { config: { ...SMALL, mounts: [mount] } })).rejects.toThrowError(message);
  expect(shop.machines.list("shop")).toEqual([]);
  expect(shop.volumes.list("shop")).toEqual([]);
});

test("one volume inside another is refused", async () => {
  const mounts = ["/data", "/data/more"].map((path) => ({ volume: "data", path }));
  await expect(shop.machines.create("shop", { config: { ...SMALL, mounts } })).rejects.toMatchObject({
    details: { field: "config.mounts[1]" },
  });
});

describe("after kill -9 of the platform", () => {
  test("what was half made or half destroyed is gone, and what was whole still exists", async () => {
    const whole = await shop.volumes.create("shop", { name: "data" });
    const files = new FastVolumeFiles(shop.world.folder);
    for (const [state, id] of [
      ["creating", "vol_00000000000000c1"],
      ["destroying", "vol_00000000000000d1"],
    ] as const) {
      shop.world.store.volumes.insert({ ...whole, id, state });
      await files.make(id, 1);
    }
    shop.world.store.volumes.insertSnapshot({
      id: "vs_00000000000000c1",
      volumeId: whole.id,
      sizeGb: 1,
      sizeBytes: 0,
      state: "creating",
      createdAt: whole.createdAt,
    });
    await writeFile(join(shop.world.folder, "volumes", whole.id, "data.ext4.new"), "");
    await shop.restart();
    expect(shop.volumes.list("shop")).toMatchObject([{ id: whole.id }]);
    expect(await shop.volumes.listSnapshots("shop", whole.id)).toEqual([]);
    expect(await files.folders()).toEqual([whole.id]);
    expect(volumeOf(await shop.run(DATA))).toBe(whole.id);
  });

  test("files that the database does not know are kept and reported", async () => {
    await new FastVolumeFiles(shop.world.folder).make("vol_00000000000000ff", 1);
    await shop.restart();
    expect(existsSync(disk("vol_00000000000000ff"))).toBe(true);
    expect(shop.world.logged.map(({ message }) => message).join()).toContain("vol_00000000000000ff");
  });
});
