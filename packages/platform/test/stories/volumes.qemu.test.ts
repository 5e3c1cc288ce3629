/** Volumes of real machines: what is on them outlives everything but their own end. */
import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { diskOf, faultsOf, notebook, Notes } from "../helpers/notebook.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

let place: Place;
beforeAll(async () => {
  place = await Place.open();
});
afterAll(async () => {
  expect(await place?.close()).toEqual(NOTHING_LEFT);
});

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
  await place.client.destroyMachine(place.app, heir.id, { force: true });
  await place.reach(heir.id, "destroyed");
});
