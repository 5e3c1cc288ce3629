/**
 * A program follows the events of a platform that is killed again and again while a machine falls asleep and wakes.
 *
 * @module-tag again
 */
import type { StreamEvent } from "@hibernaut/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { ask } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const KILLS = longOr(20, 3);

let place: Place;
beforeAll(async () => {
  place = await Place.open();
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** All events so far, from one connection after the other. */
async function read(since: number): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of place.client.readEvents({ app: place.app, type: "machine", since }))
    if ("sequence" in event) events.push(event);
  return events;
}

test(`no event is lost or told twice, although the platform is killed ${KILLS} times`, async () => {
  const { machine_id: id, private_address: address } = await place.machine();
  await ask(address);
  const told: StreamEvent[] = [];
  for (let round = 0; round < KILLS; round += 1) {
    await place.client.suspendMachine(place.app, id);
    // Later in every round: from the request to the durable snapshot it takes about 100 ms.
    await new Promise((resolve) => setTimeout(resolve, round * longOr(8, 40)));
    await place.served.kill();
    await place.served.start();
    await place.reach(id, "settled");
    told.push(...(await read(told.at(-1)?.sequence ?? 0)));
    await place.start(id);
  }
  told.push(...(await read(told.at(-1)?.sequence ?? 0)));
  const numbers = told.map(({ sequence }) => sequence);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
  // What was told in pieces is the machine's own history.
  const history = (await place.client.listMachineEvents(place.app, id, { limit: 1000 })).toReversed();
  expect(told.map(({ at, data }) => ({ at, type: data["event"], from: data["from"], to: data["to"] }))).toEqual(
    history.map(({ at, type, from, to }) => ({ at, type, from, to })),
  );
});
