/** Snapshots of volumes, on the fake hypervisor. */
import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { beforeEach, expect, test } from "vitest";
import { shopForEach } from "../../machines/test/shop.ts";
import { FastVolumeFiles } from "../../platform/test/helpers/fake-world.ts";
import { Volumes } from "../src/open.ts";

const MOUNTS = { mounts: [{ volume: "data", path: "/data" }] };
const GB = 1024 ** 3;

/** Files whose copies a test can hold up, and that clone, in fact copy, when a test says so. */
class WatchedFiles extends FastVolumeFiles {
  clones = false;
  /** Whether the guest was paused during the last clone. */
  quiet: boolean | undefined;
  readonly copying = Promise.withResolvers<void>();
  hold: Promise<void> | undefined;
  /** Ends the last copy. */
  signal: AbortSignal | undefined;
  override async canClone(): Promise<boolean> {
    return this.clones;
  }
  override async clone(from: string, to: string): Promise<void> {
    this.quiet = shop.host.guest(id)?.quiet;
    await super.copy(from, to);
  }
  override async copy(from: string, to: string, signal?: AbortSignal): Promise<void> {
    this.signal = signal;
    this.copying.resolve();
    await this.hold;
    await super.copy(from, to, signal);
  }
}

let files: WatchedFiles;
let volumes: Volumes;
let id: string;
let volumeId: string;
const shop = shopForEach({
  wrap(deps) {
    const { store, folder } = shop.world;
    files = new WatchedFiles(folder);
    const whilePaused = (machine: string, work: () => Promise<void>) => shop.machines.whilePaused(machine, work);
    volumes = new Volumes({ store, files, whilePaused, onTrouble: () => {} });
    return { ...deps, volumes };
  },
});
beforeEach(async () => {
  id = await shop.run(MOUNTS);
  volumeId = volumes.list("shop")[0]?.id ?? "";
});

const disk = (volume: string) => join(shop.world.folder, "volumes", volume, "data.ext4");
const write = async (text: string) => {
  await writeFile(disk(volumeId), text);
  await truncate(disk(volumeId), GB);
};
const read = async (volume: string) => (await readFile(disk(volume))).toString("utf8", 0, 6).replaceAll("\0", "");

test("a snapshot of a suspended machine's volume becomes a new volume, and changes with neither of them", async () => {
  await write("before");
  await shop.suspend(id);
  const snapshot = await volumes.snapshot("shop", volumeId);
  expect(snapshot).toMatchObject({ state: "created", sizeGb: 1, volumeId });
  await write("after");
  expect(await volumes.listSnapshots("shop", volumeId)).toEqual([snapshot]);
  const restored = await volumes.create("shop", { name: "old", snapshotId: snapshot.id, sizeGb: 2 });
  expect(restored).toMatchObject({ state: "created", sizeGb: 2, machineId: null });
  expect(await read(restored.id)).toBe("before");
  expect(await read(volumeId)).toBe("after");
  await shop.run({ mounts: [{ volume: restored.id, path: "/data" }] });
  expect((await stat(disk(restored.id))).size).toBe(2 * GB);
});

test("a running machine's volume is refused where files cannot be cloned, and the error says what to do", async () => {
  await expect(volumes.snapshot("shop", volumeId)).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/is running, and .* cannot clone files.*Suspend or stop the machine/),
  });
  expect(await volumes.listSnapshots("shop", volumeId)).toEqual([]);
});

test("where files can be cloned, the guest is paused for the snapshot and keeps running", async () => {
  files.clones = true;
  const before = shop.request(id);
  await expect(volumes.snapshot("shop", volumeId)).resolves.toMatchObject({ state: "created" });
  expect(files.quiet).toBe(true);
  expect(shop.host.guest(id)?.quiet).toBe(false);
  expect(shop.request(id)).toEqual({ ...before, count: (before?.count ?? 0) + 1 });
  await shop.suspend(id);
});

test("a start waits for a copy in progress", async () => {
  await shop.suspend(id);
  const hold = Promise.withResolvers<void>();
  files.hold = hold.promise;
  const snapshot = volumes.snapshot("shop", volumeId);
  await files.copying.promise;
  shop.machines.start("shop", id);
  await expect(shop.machines.wait("shop", id, ["running"], { timeoutMs: 100 })).rejects.toMatchObject({
    code: "deadline_exceeded",
  });
  expect(shop.host.of(id)).toEqual([]);
  hold.resolve();
  expect((await snapshot).state).toBe("created");
  await shop.reach(id, "running");
});

test("a snapshot past its volume's retention is deleted, and a younger one stays", async () => {
  await shop.suspend(id);
  const [old, young] = [await volumes.snapshot("shop", volumeId), await volumes.snapshot("shop", volumeId)];
  const days = (count: number) => new Date(Date.now() - count * 24 * 60 * 60_000).toISOString();
  shop.world.store.volumes.removeSnapshot(old.id);
  shop.world.store.volumes.insertSnapshot({ ...old, createdAt: days(5.1) });
  shop.world.store.volumes.removeSnapshot(young.id);
  shop.world.store.volumes.insertSnapshot({ ...young, createdAt: days(4.9) });
  expect(await volumes.listSnapshots("shop", volumeId)).toMatchObject([{ id: young.id }]);
  await expect(stat(join(shop.world.folder, "volumes", volumeId, "snapshots", `${old.id}.ext4`))).rejects.toThrow(
    "ENOENT",
  );
  await expect(volumes.create("shop", { name: "x", snapshotId: old.id })).rejects.toMatchObject({ code: "not_found" });
});

test("a snapshot is deleted by its id, and only through its own volume", async () => {
  await shop.suspend(id);
  const { id: snapshotId } = await volumes.snapshot("shop", volumeId);
  const other: VolumeRecord = await volumes.create("shop", { name: "other" });
  const wrong = volumes.destroySnapshot("shop", other.id, snapshotId);
  await expect(wrong).rejects.toMatchObject({ code: "not_found" });
  await volumes.destroySnapshot("shop", volumeId, snapshotId);
  expect(await volumes.listSnapshots("shop", volumeId)).toEqual([]);
});

test("a volume made from a snapshot cannot be smaller or belong to another app", async () => {
  volumes.extend("shop", volumeId, 3);
  await shop.suspend(id);
  const { id: snapshotId } = await volumes.snapshot("shop", volumeId);
  const smaller = volumes.create("shop", { name: "small", snapshotId, sizeGb: 2 });
  await expect(smaller).rejects.toMatchObject({ code: "invalid_argument", details: { minimum: 3 } });
  shop.platform.apps.create("blog");
  await expect(volumes.create("blog", { name: "x", snapshotId })).rejects.toMatchObject({ code: "not_found" });
});

test("a volume becomes a copy of one that sleeps, and changes with neither of them", async () => {
  await write("before");
  await expect(volumes.create("shop", { name: "copy", sourceId: volumeId })).rejects.toThrow(
    /^Volume vol_\w+ cannot be copied: its machine \w+ is running, .* cannot clone files/,
  );
  await shop.suspend(id);
  const copy = await volumes.create("shop", { name: "copy", sourceId: volumeId });
  await write("after");
  expect(await read(copy.id)).toBe("before");
  expect(volumes.list("shop")).toHaveLength(2);
});

test("a copy gives way to the machine of what is copied, and leaves nothing", async () => {
  await shop.suspend(id);
  const { promise, resolve } = Promise.withResolvers<void>();
  files.hold = promise;
  const copy = volumes.create("shop", { name: "copy", sourceId: volumeId });
  await files.copying.promise;
  shop.machines.start("shop", id);
  await expect.poll(() => files.signal?.aborted).toBe(true);
  resolve();
  await expect(copy).rejects.toMatchObject({ code: "aborted", message: expect.stringMatching(/started meanwhile/) });
  await shop.reach(id, "running");
  expect(volumes.list("shop")).toHaveLength(1);
});
