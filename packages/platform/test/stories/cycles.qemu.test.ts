/**
 * @module-tag again
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const CYCLES = longOr(50, 3);
const CLOCK_TOLERANCE_MS = 500;

let place: Place;
beforeAll(async () => {
  place = await Place.open();
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

test(`${CYCLES} times asleep and awake: the same process, the right time, nothing leaks`, {
  timeout: 300_000,
}, async () => {
  const { machine_id: id, private_address: address } = await place.machine();
  const first = await askUntilAnswered(address);
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    await place.suspend(id);
    expect(await place.processes(), "a sleeping machine has no process").toEqual([]);
    await place.start(id);
    const answer = await askUntilAnswered(address);
    expect(answer).toMatchObject({ nonce: first.nonce, pid: first.pid, count: first.count + cycle });
    expect(Math.abs(Date.parse(answer.now) - Date.now())).toBeLessThan(CLOCK_TOLERANCE_MS);
    expect(await place.processes()).toHaveLength(1);
  }
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume", reason: "snapshot" });
});
