/** Volumes of real machines: what is on them outlives everything but their own end. */
import { existsSync } from "node:fs";
import { truncate } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { diskOf, faultsOf, Notes, notebook } from "../helpers/notebook.ts";
import { Place } from "../helpers/served.ts";

const GB = 1024 ** 3;

const place = Place.forTests();

const stop = async (id: string) => {
  await place.client.stopMachine(place.app, id);
  await place.reach(id, "stopped");
};

test("what is on a volume survives suspend, stop, update and the end of its machine", async () => {
  const machine = await place.machine(notebook());
  const { machine_id: id } = machine;
  expect(machine).toMatchObject({ state: "running", state_reason: null });
  const [mount] = machine.config.mounts ?? [];
  const volumeId = mount?.volume ?? "";
  expect(mount).toEqual({ volume: expect.stringMatching(/^vol_[0-9a-f]{16}$/), name: "data", path: "/data" });
  const file = diskOf(place.dataDir, volumeId);
  const notes = new Notes(machine.private_address);
  expect(await notes.disk()).toMatchObject({ mount: expect.stringMatching(/ext4 rw,noatime/), entries: [] });

  await notes.add("before a suspend", { sure: false });
  expect(await faultsOf(file), "in use: the check would find them").not.toEqual([]);
  await place.suspend(id);
  expect(await faultsOf(file), "suspended").toEqual([]);
  await place.start(id);
  expect((await place.get(id)).last_boot?.kind).toBe("resume");
  expect(await notes.all()).toEqual(["before a suspend"]);

  await notes.add("before a stop", { sure: false });
  await stop(id);
  expect(await faultsOf(file), "stopped").toEqual([]);
  await place.start(id);
  expect((await place.get(id)).last_boot?.kind).toBe("cold");
  expect(await notes.all()).toEqual(["before a suspend", "before a stop"]);

  await notes.add("before an update", { sure: false });
  await place.client.updateMachine(place.app, id, { ...machine.config, ...notebook(), env: { COLOUR: "blue" } });
  await place.reach(id, "running");
  expect((await place.get(id)).config.mounts).toEqual([mount]);
  expect(await notes.all()).toContain("before an update");

  await notes.add("before its end", { sure: false });
  await place.client.destroyMachine(place.app, id, { force: true });
  await place.reach(id, "destroyed");
  expect(await faultsOf(file), "destroyed while it ran").toEqual([]);
  const heir = await place.machine(notebook());
  expect(heir.config.mounts?.[0]?.volume).toBe(volumeId);
  const all = ["before a suspend", "before a stop", "before an update", "before its end"];
  expect(await new Notes(heir.private_address).all()).toEqual(all);
  expect(existsSync(file)).toBe(true);
  await stop(heir.id);
});

test("a volume that is extended has its new size after a restart, and what was on it", { tags: "again" }, async () => {
  const machine = await place.machine(notebook("grows", 1));
  const { machine_id: id, config } = machine;
  const volumeId = config.mounts?.[0]?.volume ?? "";
  const notes = new Notes(machine.private_address);
  const before = await notes.disk();
  // The image's user, and not root, has it.
  expect(before).toMatchObject({ uid: 1000, gid: 1000, entries: [] });
  expect(before.bytes).toBeLessThanOrEqual(GB);
  await notes.add("small");
  expect(await place.client.extendVolume(place.app, volumeId, 3)).toMatchObject({ needs_restart: true });
  await place.suspend(id);
  await place.start(id);
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
  expect(await notes.disk()).toMatchObject({ bytes: before.bytes });
  await place.client.restartMachine(place.app, id);
  await place.reach(id, "running");
  const after = await notes.disk();
  expect(after.bytes).toBeGreaterThan(2.8 * GB);
  expect(after.bytes).toBeLessThanOrEqual(3 * GB);
  expect(after.entries).toEqual(["notes"]);
  expect(await notes.all()).toEqual(["small"]);
  await stop(id);
  expect(await faultsOf(diskOf(place.dataDir, volumeId))).toEqual([]);
});

describe("a machine with a volume", () => {
  let id: string;
  let volumeId: string;
  let notes: Notes;
  beforeAll(async () => {
    const machine = await place.machine({ ...notebook("original"), restart: { policy: "always" } });
    id = machine.machine_id;
    volumeId = machine.config.mounts?.[0]?.volume ?? "";
    notes = new Notes(machine.private_address);
  });

  test("a snapshot of a sleeping machine's volume is restored into a new one", { tags: "again" }, async () => {
    await notes.add("before");
    await expect(place.client.createVolumeSnapshot(place.app, volumeId)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("Suspend or stop the machine"),
    });
    await place.suspend(id);
    const snapshot = await place.client.createVolumeSnapshot(place.app, volumeId);
    expect(snapshot).toMatchObject({ status: "created", volume_size: 1 });
    expect(snapshot.size).toBeLessThan(GB / 4);
    await place.start(id);
    await notes.add("after");
    const { id: restored } = await place.client.createVolume(place.app, { name: "copy", snapshot_id: snapshot.id });
    const other = await place.machine({ ...notebook("copy"), mounts: [{ volume: restored, path: "/data" }] });
    expect(await new Notes(other.private_address).all()).toEqual(["before"]);
    expect(await notes.all()).toEqual(["before", "after"]);
    await stop(other.machine_id);
  });

  test("kill -9 of the platform during a suspend leaves nothing frozen", { tags: "again" }, async () => {
    const before = await notes.all();
    await place.client.suspendMachine(place.app, id);
    await place.served.kill();
    await place.served.start();
    await place.reach(id, "settled");
    await place.start(id);
    await notes.add("after a suspend that was cut");
    await place.client.suspendMachine(place.app, id);
    await place.start(id);
    await notes.add("after one that was taken back");
    expect(await notes.all()).toHaveLength(before.length + 2);
  });
});

test("a volume that cannot be mounted fails the start, with the reason", { tags: "again" }, async () => {
  const { id: volumeId } = await place.client.createVolume(place.app, { name: "broken" });
  await truncate(diskOf(place.dataDir, volumeId), 0);
  const machine = await place.machine({ ...notebook("broken"), restart: { policy: "no" } });
  expect(machine).toMatchObject({
    state: "failed",
    state_reason: `volume ${volumeId} could not be mounted at /data: Invalid argument`,
  });
});
