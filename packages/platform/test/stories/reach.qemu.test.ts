/**
 * A machine for each user: requests reach the right one by its hostname and through a router, and the others sleep.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { PATIENT } from "../helpers/patient.ts";
import { Place, WARM } from "../helpers/served.ts";
import { USERS, UserBoxes } from "../helpers/user-boxes.ts";

/** The last one is never asked for. */
const NAMES = [...longOr(["dan", "eva", "finn", "gina", "hugo", "ida"], []), "anna", "bob", "carla", "never"];
const VISITED = NAMES.slice(0, -1);
const REQUESTS = longOr(1000, 300);

const place = Place.forTests({ ...PATIENT, ...WARM, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });

test("each way wakes the right one of the machines, and hundreds of requests reach no other", {
  // Each step has a limit of its own that only a fault reaches.
  timeout: longOr(3_600_000, 600_000),
}, async () => {
  const boxes = await UserBoxes.create(place, NAMES);
  for (const [at, name] of VISITED.entries()) {
    await boxes.wake(name, at % 2 === 0 ? "hostname" : "replay");
    // Those that were woken before may be asleep again. Those that follow have not been asked for.
    const later = new Set(NAMES.slice(at + 1));
    expect((await boxes.awake()).filter((awake) => later.has(awake))).toEqual([]);
    expect(await boxes.wakes(name), `wakes of ${name}`).toBe(1);
  }

  await boxes.visit(VISITED, REQUESTS);
  for (const name of VISITED) await boxes.check(name);
  expect(await boxes.wakes("never")).toBe(0);

  for (const [missing, status, error] of [
    [await boxes.at(`nobody.${USERS}.localhost`), 404, "unknown_machine"],
    [await boxes.at(`${place.app}.localhost`, "/replay/app=ghost"), 502, "replay_unknown_app"],
  ] as const) {
    expect(missing.status).toBe(status);
    expect(JSON.parse(missing.text)).toMatchObject({ error });
  }
  await place.client.destroyApp(USERS, { force: true });
});
