/**
 * Swap in real machines: more memory than there is, and what becomes of it when the machine sleeps.
 *
 * @module-tag again
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { request } from "../helpers/http.ts";
import { Place } from "../helpers/served.ts";

const MB = 1024 * 1024;
/** All that the machine has without its swap, of which the kernel takes a third. */
const FILL_MB = 128;
/** At least so much of it is swapped out then. */
const SWAPPED_MB = 16;
const SWAP = { guest: { memory_mb: 128 }, init: { swap_size_mb: 256 }, restart: { policy: "no" as const } };

const place = Place.forTests();

interface Sum {
  bytes: number;
  wrong: number;
  swap_kb: number;
  swapped_kb: number;
}

const ask = async (address: string, path: string) => (await request(`http://${address}:8080${path}`)).text;
const sum = async (address: string) => JSON.parse(await ask(address, "/sum")) as Sum;

test("an app may use more memory than its machine has, and a sleep keeps every byte, swapped out or not", async () => {
  const machine = await place.machine({ ...SWAP, keep_layer: true });
  const { machine_id: id, private_address: address } = machine;
  expect(machine).toMatchObject({ state: "running", state_reason: null, suspend: { eligible: true } });
  expect(await sum(address)).toEqual({ bytes: 0, wrong: 0, swap_kb: 256 * 1024 - 4, swapped_kb: expect.any(Number) });
  expect(await ask(address, `/fill/${FILL_MB}`)).toBe("filled");
  const awake = await sum(address);
  expect(awake).toMatchObject({ bytes: FILL_MB * MB, wrong: 0 });
  expect(awake.swapped_kb * 1024).toBeGreaterThan(SWAPPED_MB * MB);
  // As much of the layer's file as was swapped out is really on the disk.
  const layer = await stat(join(place.dataDir, "machines", id, "layer.ext4"));
  expect(layer.blocks * 512).toBeGreaterThan(awake.swapped_kb * 1024);

  await place.suspend(id);
  expect(await place.processes()).toEqual([]);
  await place.served.kill();
  await place.served.start();
  await place.start(id);
  expect((await place.get(id)).last_boot?.kind).toBe("resume");
  expect(await sum(address)).toMatchObject({ bytes: FILL_MB * MB, wrong: 0 });

  // The swap file of the run before is on the layer that is kept. It is replaced.
  await place.client.stopMachine(place.app, id);
  await place.reach(id, "stopped");
  await place.start(id);
  expect((await place.get(id)).last_boot?.kind).toBe("cold");
  expect(await sum(address)).toMatchObject({ bytes: 0, swap_kb: 256 * 1024 - 4 });
});

test("without swap, the same app does not get the memory", async () => {
  const machine = await place.machine({ ...SWAP, init: {} });
  expect(await sum(machine.private_address)).toMatchObject({ swap_kb: 0 });
  expect(await ask(machine.private_address, `/fill/${FILL_MB}`)).toBe("no memory");
});
