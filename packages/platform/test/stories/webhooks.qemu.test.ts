/**
 * A receiver hears of a machine that falls asleep and wakes, also when the platform is killed in between.
 *
 * @module-tag again
 */
import type { StreamEvent } from "@hibernaut/client";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Receiver, soon, withStatus } from "../../../events/test/webhooks/receiver.ts";
import { longOr } from "../helpers/long.ts";
import { Place } from "../helpers/served.ts";

const KILLS = longOr(20, 2);

let receiver: Receiver;
let secret: string;
let webhook: string;
let id: string;
afterAll(() => receiver.close());
const place = Place.forTests({ HIBERNAUT_WEBHOOK_PRIVATE_ADDRESSES: "allow", HIBERNAUT_WEBHOOK_HTTP: "allow" });
beforeAll(async () => {
  receiver = await Receiver.open();
  const made = await place.client.createWebhook({ url: receiver.url, events: ["machine"], apps: [place.app] });
  ({ secret, id: webhook } = made);
  ({ machine_id: id } = await place.machine());
});

/** What arrived, without test messages. */
const arrived = () => receiver.accepted.filter(({ type }) => type !== "webhook.test");

/** All events of machines since this one, as the stream tells them. */
async function read(since: number): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of place.client.readEvents({ app: place.app, type: "machine", since }))
    if ("sequence" in event) events.push(event);
  return events;
}

/** Waits until the receiver has every event, each once and in order. */
async function everything(): Promise<void> {
  const expected = (await read(0)).map(({ sequence }) => sequence);
  await soon(() => expect(arrived().map(({ data }) => data.sequence)).toEqual(expected));
}

test("a machine suspends and resumes, and the receiver is told in order", async () => {
  await place.suspend(id);
  await place.start(id);
  await everything();
  for (const { body, headers } of arrived()) new Webhook(secret).verify(body, headers);
  const suspended = arrived().find(({ type }) => type === "machine.suspended");
  expect(suspended?.data).toMatchObject({ machine_id: id, app_name: place.app, from: "suspending" });
  expect(arrived().at(-1)).toMatchObject({ type: "machine.running", data: { start: { kind: "resume" } } });
});

test(`killed between a change and its delivery, ${KILLS} times, the platform tells it later, once, to receivers and readers`, {
  tags: "again",
}, async () => {
  const told: StreamEvent[] = [];
  for (let round = 0; round < KILLS; round += 1) {
    await everything();
    // Nothing gets through now, so what happens is not delivered before the platform ends.
    receiver.answer = (_response, _received, request) => request.socket.destroy();
    await place.suspend(id);
    await place.served.kill();
    const before = arrived().length;
    receiver.answer = withStatus(200);
    await place.served.start();
    await place.reach(id, "settled");
    told.push(...(await read(told.at(-1)?.sequence ?? 0)));
    // What waits for its next attempt is due once the receiver has answered.
    expect(await place.client.testWebhook(webhook)).toMatchObject({ outcome: "delivered" });
    await everything();
    expect(
      arrived()
        .slice(before)
        .map(({ type }) => type),
    ).toContain("machine.suspended");
    await place.start(id);
  }
  await everything();
  // What the stream told in pieces is the machine's own history.
  told.push(...(await read(told.at(-1)?.sequence ?? 0)));
  const history = (await place.client.listMachineEvents(place.app, id, { limit: 1000 })).toReversed();
  expect(told.map(({ at, data }) => ({ at, type: data["event"], from: data["from"], to: data["to"] }))).toEqual(
    history.map(({ at, type, from, to }) => ({ at, type, from, to })),
  );
});
