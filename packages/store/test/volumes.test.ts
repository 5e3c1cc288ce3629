import { join } from "node:path";
import type { VolumeRecord, VolumeSnapshotRecord } from "@hibernaut/domain/volume";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { Store } from "../src/contract.ts";
import { openStore } from "../src/open.ts";
import { temporaryFolder } from "./helpers.ts";

const AT = "2026-01-01T00:00:00.000Z";
let store: Store;

beforeEach(() => {
  store = openStore(join(temporaryFolder(), "hibernaut.db"));
  onTestFinished(() => store.close());
  for (const name of ["shop", "blog"]) store.apps.insert({ name, createdAt: AT });
});

const volume = (changes: Partial<VolumeRecord> = {}): VolumeRecord => ({
  id: "vol_0000000000000001",
  app: "shop",
  name: "data",
  sizeGb: 1,
  state: "creating",
  snapshotRetention: 5,
  createdAt: AT,
  ...changes,
});

const snapshot = (changes: Partial<VolumeSnapshotRecord> = {}): VolumeSnapshotRecord => ({
  id: "vs_0000000000000001",
  volumeId: volume().id,
  sizeGb: 1,
  sizeBytes: 0,
  state: "creating",
  createdAt: AT,
  ...changes,
});

test("volumes are returned as they were stored, oldest first, for their app only", () => {
  const second = volume({ id: "vol_0000000000000000" });
  const other = volume({ id: "vol_0000000000000003", app: "blog", sizeGb: 7, snapshotRetention: 60 });
  for (const one of [volume(), second, other]) expect(store.volumes.insert(one)).toBe(true);
  expect(store.volumes.list("shop")).toEqual([volume(), second]);
  expect(store.volumes.list()).toEqual([volume(), second, other]);
  expect(store.volumes.get(other.id)).toEqual(other);
  store.volumes.update({ ...other, state: "created", sizeGb: 9, name: "never changes" });
  expect(store.volumes.get(other.id)).toEqual({ ...other, state: "created", sizeGb: 9 });
  store.volumes.remove(other.id);
  expect(store.volumes.get(other.id)).toBeUndefined();
});

test("a deleted app gets no volume, and an app with volumes is not deleted", () => {
  expect(store.volumes.insert(volume({ app: "gone" }))).toBe(false);
  store.volumes.insert(volume());
  expect(store.apps.delete("shop")).toBe(false);
  store.volumes.remove(volume().id);
  expect(store.apps.delete("shop")).toBe(true);
});

test("snapshots are listed newest first, and keep their volume's record", () => {
  store.volumes.insert(volume());
  const later = snapshot({ id: "vs_0000000000000002" });
  for (const one of [snapshot(), later]) store.volumes.insertSnapshot(one);
  store.volumes.updateSnapshot({ ...later, sizeBytes: 12, state: "created" });
  expect(store.volumes.listSnapshots(volume().id)).toEqual([{ ...later, sizeBytes: 12, state: "created" }, snapshot()]);
  expect(() => store.volumes.remove(volume().id)).toThrow("FOREIGN KEY");
  for (const { id } of [snapshot(), later]) store.volumes.removeSnapshot(id);
  expect(store.volumes.getSnapshot(later.id)).toBeUndefined();
  store.volumes.remove(volume().id);
});
