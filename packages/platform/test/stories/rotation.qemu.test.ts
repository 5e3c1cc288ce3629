/**
 * An app keeps as many machines awake as its load needs. `soak.long.test.ts` does the same for an hour.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { RotatingApp } from "../helpers/rotating-app.ts";
import { Place, WARM } from "../helpers/served.ts";

const place = Place.forTests({ ...PATIENT, ...WARM, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });

test("a light load leaves one of three machines awake, a gap none, a burst brings all back, and no request fails", {
  // Each step has a limit of its own that only a fault reaches.
  timeout: 600_000,
}, async () => {
  const shop = await RotatingApp.create(place, place.app, 1);
  await shop.steady(500);
  await shop.onEdge(3000);
  await shop.gap();
  await shop.burst(500);
  expect(shop.visits.tally.failures).toEqual([]);
  expect(shop.visits.tally.wakes, "what slept has kept its memory").not.toHaveProperty("cold");
  await shop.check();
});
