/** Which machine has a volume, and for how long, on the fake hypervisor. */
import { existsSync } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { Machines, Resources } from "@hibernaut/machines";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FastVolumeFiles, newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import type { Volumes } from "../src/open.ts";

const TIMEOUT = { timeoutMs: 5000 };
const DATA: MachineConfig = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
const GB = 1024 ** 3;

let world: World;
let platform: Resources;
let machines: Machines;
let volumes: Volumes;

/** Starts a platform; `volumes` are those that its machines use. */
async function start(): Promise<void> {
  platform = await startPlatform(world, {
    wrap: (deps) => {
      volumes = deps.volumes as Volumes;
      return deps;
    },
  });
  ({ machines } = platform);
}

beforeEach(async () => {
  world = await newWorld();
  await start();
  platform.apps.create("shop");
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const reach = (id: string, state: "running" | "stopped" | "suspended" | "destroyed") =>
  machines.wait("shop", id, [state], TIMEOUT);
const disk = (id: string) => join(world.folder, "volumes", id, "data.ext4");
const volumeOf = (id: string) => machines.get("shop", id).record.config.mounts?.[0]?.volume ?? "";

async function running(config: MachineConfig = DATA): Promise<string> {
  const { record } = await machines.create("shop", { config });
  await reach(record.id, "running");
  return record.id;
}

async function destroyed(id: string): Promise<void> {
  machines.destroy("shop", id, { force: true });
  await reach(id, "destroyed");
}

describe("a machine that asks for a volume by name", () => {
  test("gets a new volume of that size, and its guest a disk and a mount", async () => {
    const id = await running({ ...SMALL, mounts: [{ source: "data", path: "/data", size_gb: 3 }] });
    const volume = volumeOf(id);
    expect(volumes.list("shop")).toMatchObject([
      { id: volume, name: "data", sizeGb: 3, state: "created", machineId: id, snapshotRetention: 5 },
    ]);
    expect(machines.get("shop", id).record.config.mounts).toEqual([
      { volume, name: "data", path: "/data", size_gb: 3 },
    ]);
    expect((await stat(disk(volume))).size).toBe(3 * GB);
    const [process] = world.host.of(id);
    expect(process?.spec.volumes).toEqual([{ serial: volume, file: disk(volume) }]);
    expect(process?.guest.volumes).toEqual([`${volume} /data`]);
  });

  test("gets the oldest free volume before a new one is made", async () => {
    const [old] = [
      await volumes.create("shop", { name: "data", sizeGb: 2 }),
      await volumes.create("shop", { name: "data" }),
    ];
    await volumes.create("shop", { name: "other" });
    expect(volumeOf(await running())).toBe(old.id);
    expect(volumes.list("shop")).toHaveLength(3);
  });

  test("never shares it: machines created at once get one each", async () => {
    const free = await volumes.create("shop", { name: "data" });
    const made = await Promise.all(Array.from({ length: 8 }, () => machines.create("shop", { config: DATA })));
    const ids = made.map(({ record }) => record.config.mounts?.[0]?.volume);
    expect(new Set(ids).size).toBe(8);
    expect(ids).toContain(free.id);
    await Promise.all(made.map(({ record }) => reach(record.id, "running")));
  });

  test("gets two volumes when it asks twice", async () => {
    const mounts = ["/one", "/two"].map((path) => ({ volume: "data", path }));
    await running({ ...SMALL, mounts });
    expect(volumes.list("shop")).toHaveLength(2);
  });
});

describe("a volume", () => {
  test("stays with its machine through suspend, stop and update, and outlives it", async () => {
    const id = await running();
    const volume = volumeOf(id);
    await writeFile(disk(volume), "kept");
    machines.suspend("shop", id);
    await reach(id, "suspended");
    expect(volumes.get("shop", volume).machineId).toBe(id);
    machines.stop("shop", id);
    await reach(id, "stopped");
    await machines.update("shop", id, { ...DATA, env: { A: "1" } });
    await machines.wait("shop", id, ["settled"], TIMEOUT);
    expect(volumeOf(id)).toBe(volume);
    await machines.update("shop", id, machines.get("shop", id).record.config);
    await machines.wait("shop", id, ["settled"], TIMEOUT);
    expect(volumeOf(id)).toBe(volume);
    await destroyed(id);
    expect(volumes.get("shop", volume).machineId).toBeNull();
    expect(volumeOf(await running())).toBe(volume);
    expect(volumes.list("shop")).toHaveLength(1);
  });

  test("is free for another machine only after an update without it", async () => {
    const id = await running();
    const volume = volumeOf(id);
    const byId = { ...SMALL, mounts: [{ volume, path: "/data" }] };
    await expect(machines.create("shop", { config: byId })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`it belongs to machine ${id}`),
    });
    await machines.update("shop", id, { ...SMALL, mounts: [] });
    await reach(id, "running");
    expect(world.host.of(id)[0]?.spec.volumes).toEqual([]);
    expect(volumeOf(await running(byId))).toBe(volume);
  });

  test("cannot be destroyed while a machine has it, and is then destroyed with its snapshots", async () => {
    const id = await running();
    const volume = volumeOf(id);
    const refused = { code: "failed_precondition", details: { volume_id: volume, machine_id: id } };
    await expect(volumes.destroy("shop", volume)).rejects.toMatchObject(refused);
    machines.stop("shop", id);
    await reach(id, "stopped");
    await volumes.snapshot("shop", volume);
    await expect(volumes.destroy("shop", volume)).rejects.toMatchObject(refused);
    await destroyed(id);
    await volumes.destroy("shop", volume);
    expect(volumes.list("shop")).toEqual([]);
    expect(existsSync(join(world.folder, "volumes", volume))).toBe(false);
  });

  test("keeps its app from being deleted, unless force is used", async () => {
    await volumes.create("shop", { name: "data" });
    await expect(platform.apps.delete("shop")).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("1 volume(s)"),
    });
    await running();
    await platform.apps.delete("shop", { force: true });
    expect(world.store.volumes.list()).toEqual([]);
  });

  test("that was extended gets its new size at the next cold start, not at a resume", async () => {
    const id = await running();
    const volume = volumeOf(id);
    const size = async () => (await stat(disk(volume))).size / GB;
    expect(volumes.extend("shop", volume, 2)).toMatchObject({ volume: { sizeGb: 2 }, needsRestart: true });
    machines.suspend("shop", id);
    await reach(id, "suspended");
    expect(volumes.extend("shop", volume, 3).needsRestart).toBe(true);
    machines.start("shop", id);
    await reach(id, "running");
    expect(await size()).toBe(1);
    machines.stop("shop", id);
    await reach(id, "stopped");
    expect(volumes.extend("shop", volume, 4).needsRestart).toBe(false);
    machines.start("shop", id);
    await reach(id, "running");
    expect(await size()).toBe(4);
    expect(() => volumes.extend("shop", volume, 3)).toThrowError(/cannot be made smaller/);
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
  await expect(machines.create("shop", { config: { ...SMALL, mounts: [mount] } })).rejects.toThrowError(message);
  expect(machines.list("shop")).toEqual([]);
  expect(volumes.list("shop")).toEqual([]);
});

test("one volume inside another is refused", async () => {
  const mounts = ["/data", "/data/more"].map((path) => ({ volume: "data", path }));
  await expect(machines.create("shop", { config: { ...SMALL, mounts } })).rejects.toMatchObject({
    details: { field: "config.mounts[1]" },
  });
});

describe("after kill -9 of the platform", () => {
  test("what was half made or half destroyed is gone, and what was whole still exists", async () => {
    const whole = await volumes.create("shop", { name: "data" });
    const files = new FastVolumeFiles(world.folder);
    for (const [state, id] of [
      ["creating", "vol_00000000000000c1"],
      ["destroying", "vol_00000000000000d1"],
    ] as const) {
      world.store.volumes.insert({ ...whole, id, state });
      await files.make(id, 1);
    }
    world.store.volumes.insertSnapshot({
      id: "vs_00000000000000c1",
      volumeId: whole.id,
      sizeGb: 1,
      sizeBytes: 0,
      state: "creating",
      createdAt: whole.createdAt,
    });
    await writeFile(join(world.folder, "volumes", whole.id, "data.ext4.new"), "");
    await platform.close();
    await start();
    expect(volumes.list("shop")).toMatchObject([{ id: whole.id }]);
    expect(await volumes.listSnapshots("shop", whole.id)).toEqual([]);
    expect(await files.folders()).toEqual([whole.id]);
    expect(volumeOf(await running())).toBe(whole.id);
  });

  test("files that the database does not know are kept and reported", async () => {
    await new FastVolumeFiles(world.folder).make("vol_00000000000000ff", 1);
    await platform.close();
    await start();
    expect(existsSync(disk("vol_00000000000000ff"))).toBe(true);
    expect(world.logged.map(({ message }) => message).join()).toContain("vol_00000000000000ff");
  });
});
