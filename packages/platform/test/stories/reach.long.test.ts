/** The same as in reach.qemu.test.ts with more machines and requests: a router, and ten machines that sleep. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { packSmallApp } from "../helpers/small-app/image.ts";
import { USERS, UserBoxes } from "../helpers/user-boxes.ts";

const NAMES = Array.from({ length: 10 }, (_, at) => `user-${at}`);
const REQUESTS = 1000;

let place: Place;
beforeAll(async () => {
  await packSmallApp();
  place = await Place.open({ ...PATIENT, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

test("each of ten sleeping machines is woken by its own requests alone, and 1,000 requests reach no other", {
  // Each step has a limit of its own that only a fault reaches.
  timeout: 3_600_000,
}, async () => {
  const boxes = await UserBoxes.create(place, NAMES);
  expect(await boxes.awake()).toEqual([]);
  for (const [at, name] of NAMES.entries()) {
    await boxes.wake(name, at % 2 === 0 ? "hostname" : "replay");
    // Those that were woken before may be asleep again. Those that follow have not been asked for.
    const later = new Set(NAMES.slice(at + 1));
    expect((await boxes.awake()).filter((awake) => later.has(awake))).toEqual([]);
    expect(await boxes.wakes(name), `wakes of ${name}`).toBe(1);
  }

  const [visited, left] = [NAMES.slice(0, -2), NAMES.slice(-2)];
  await boxes.visit(visited, REQUESTS / 2);
  for (const name of left) expect(await boxes.wakes(name), `wakes of ${name}, which nobody visits`).toBe(1);
  await boxes.visit(NAMES, REQUESTS / 2);
  for (const name of NAMES) await boxes.check(name);
  await place.client.destroyApp(USERS, { force: true });
});
