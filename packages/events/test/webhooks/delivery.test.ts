/** Events on their way to receivers that are slow, refuse, lead inwards, break off, or are away for a day. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { networkList } from "@hibernaut/lib/public-addresses";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { quietFor } from "../../../platform/test/helpers/quiet.ts";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { slowed } from "../../../platform/test/helpers/slow.ts";
import { KEPT_DELIVERIES } from "../../../store/src/deliveries.ts";
import { guardedLookup } from "../../src/webhooks/target.ts";
import { openReceiver, type Received, Receiver, soon, withStatus } from "./receiver.ts";
import { FastClock, HeldClock, openRig, type Rig } from "./rig.ts";

const DAY_MS = 86_400_000;
const EVERYTHING = { description: "", events: [], apps: null };
const numbers = (received: readonly Received[]) => received.map(({ data }) => data.sequence as number);
/** Of one machine. */
const of = (received: readonly Received[], machine: string) =>
  received.filter(({ data }) => data.machine_id === machine);

function hook({ webhooks, receiver }: Rig, more: object = {}) {
  return webhooks.create({ ...EVERYTHING, url: receiver.url, ...more });
}

test("an event arrives signed, once, and the log says so", async () => {
  const rig = await openRig();
  const { webhook, secret } = hook(rig, { events: ["machine.suspended"] });
  rig.happen("one");
  rig.happen("one", { type: "machine.suspended", data: { from: "suspending" } });
  const [{ headers, body, method, path }] = (await rig.receiver.took(1)) as [Received];
  expect([method, path, headers["content-type"], headers["user-agent"]]).toEqual([
    ...["POST", "/hook", "application/json", "Hibernaut/1"],
  ]);
  const event = new Webhook(secret).verify(body, headers) as { data: { sequence: number } };
  expect(event).toMatchObject({ type: "machine.suspended", data: { machine_id: "one", from: "suspending" } });
  await soon(() => expect(rig.log()).toMatchObject([{ state: "delivered", attempts: 1, last: { status: 200 } }]));
  expect(rig.log()[0]).toMatchObject({ sequence: event.data.sequence, messageId: headers["webhook-id"] });
  expect(rig.webhooks.counts).toMatchObject({ attempts: { delivered: 1 }, waiting: 0 });
  // Nothing that was delivered is delivered again.
  await rig.restart();
  rig.happen("one", { type: "machine.suspended" });
  expect(numbers(await rig.receiver.took(2))).toEqual([event.data.sequence, event.data.sequence + 1]);
  expect(webhook.id).toMatch(/^wh_[0-9a-f]{16}$/);
});

test("without webhooks, nobody listens to the events", async () => {
  const rig = await openRig();
  const after = vi.spyOn(rig.store.deliveries, "takeIn");
  rig.happen("one");
  await quietFor(200);
  expect(after).not.toHaveBeenCalled();
  const { webhook } = hook(rig);
  rig.happen("one");
  await rig.receiver.took(1);
  await rig.webhooks.remove(webhook.id);
  rig.happen("one");
  await quietFor(200);
  expect(rig.receiver.received).toHaveLength(1);
});

test("a receiver that answers 500 for a day gets everything when it is back, in order for each machine", async () => {
  const clock = new FastClock();
  const rig = await openRig({ clock });
  hook(rig);
  const began = clock.now();
  rig.receiver.answer = (response) => void response.writeHead(clock.now() - began < DAY_MS ? 500 : 204).end();
  for (let round = 0; round < 5; round += 1) for (const machine of ["one", "two", "three"]) rig.happen(machine);
  const accepted = await rig.receiver.took(15);
  expect(clock.now() - began).toBeGreaterThan(DAY_MS);
  for (const machine of ["one", "two", "three"]) {
    const own = numbers(of(accepted, machine));
    expect(own).toHaveLength(5);
    expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
  expect(rig.webhooks.list()[0]?.disabled).toBeNull();
  await soon(() => expect(rig.log().every(({ state }) => state === "delivered")).toBe(true));
});

test("a receiver that never comes back: the webhook is disabled, others are told, and enabling it continues", async () => {
  const clock = new FastClock();
  const rig = await openRig({ clock });
  const { webhook } = hook(rig, { events: ["machine", "webhook"] });
  const other = await openReceiver();
  rig.webhooks.create({ ...EVERYTHING, url: other.url, events: ["webhook"] });
  // That there is another one.
  await rig.receiver.took(1);
  rig.receiver.answer = withStatus(503);
  rig.happen("one");
  rig.happen("one");
  const [told] = (await other.took(1)) as [Received];
  expect(told).toMatchObject({
    type: "webhook.disabled",
    data: { webhook_id: webhook.id, host: new URL(rig.receiver.url).host },
  });
  expect(told.data.reason).toMatch(/^The receiver answered 503\. .* It was the last of 11 attempts\.$/);
  const tried = numbers(rig.receiver.received.slice(1));
  expect([tried.length, new Set(tried).size]).toEqual([11, 1]);
  expect(rig.webhooks.get(webhook.id).disabled).toMatchObject({ reason: told.data.reason });
  rig.happen("one");
  rig.receiver.answer = withStatus(200);
  await rig.webhooks.enable(webhook.id);
  const [, ...accepted] = await rig.receiver.took(4);
  // Not that it was disabled itself.
  expect(accepted.map(({ type }) => type)).toEqual(Array.from({ length: 3 }, () => "machine.running"));
  expect(numbers(accepted)).toEqual(numbers(accepted).toSorted((a, b) => a - b));
});

test("enabled with skip, what waited and what happened meanwhile is dropped", async () => {
  const rig = await openRig({ clock: new HeldClock() });
  const { webhook } = hook(rig);
  rig.receiver.answer = withStatus(500);
  rig.happen("one", { data: { is: "waiting" } });
  await rig.receiver.has(1);
  await rig.webhooks.disable(webhook.id);
  rig.happen("one", { data: { is: "missed" } });
  rig.receiver.answer = withStatus(200);
  await rig.webhooks.enable(webhook.id, true);
  rig.happen("one", { data: { is: "new" } });
  expect((await rig.receiver.took(1))[0]?.data.is).toBe("new");
  expect(rig.log().map(({ state }) => state)[0]).toBe("skipped");
});

test("410 Gone disables at once", async () => {
  const rig = await openRig();
  const { webhook } = hook(rig);
  rig.receiver.answer = withStatus(410);
  rig.happen("one");
  await soon(() => expect(rig.webhooks.get(webhook.id).disabled?.reason).toMatch(/410 Gone: it wants no more events/));
  rig.happen("two");
  await quietFor(200);
  expect(rig.receiver.received).toHaveLength(1);
});

test("what fails for one machine holds only that machine's later events", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock });
  hook(rig);
  rig.receiver.answer = (response, { data }) => void response.writeHead(data.machine_id === "bad" ? 500 : 200).end();
  rig.happen("bad");
  for (let count = 0; count < 20; count += 1) {
    rig.happen("bad");
    rig.happen("good");
  }
  const good = numbers(of(await rig.receiver.took(20), "good"));
  expect(good).toHaveLength(20);
  expect(new Set(numbers(of(rig.receiver.received, "bad"))).size).toBe(1);
  rig.receiver.answer = withStatus(200);
  clock.move(60_000);
  const bad = numbers(of(await rig.receiver.took(41), "bad"));
  expect(bad).toEqual(bad.toSorted((a, b) => a - b));
  expect(bad).toHaveLength(21);
});

test("Retry-After is waited for", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock });
  hook(rig);
  rig.receiver.answer = withStatus(429, { "retry-after": "120" });
  rig.happen("one");
  await rig.receiver.has(1);
  await soon(() => expect(rig.log()[0]?.nextAt).toBe(clock.now() + 120_000));
  rig.receiver.answer = withStatus(200);
  clock.move(119_000);
  await quietFor(100);
  expect(rig.receiver.received).toHaveLength(1);
  clock.move(1_000);
  await rig.receiver.took(1);
});

test("a receiver that is back, as a test message shows, gets at once what waited", async () => {
  const rig = await openRig({ clock: new HeldClock() });
  const { webhook } = hook(rig);
  rig.receiver.answer = withStatus(503);
  rig.happen("one");
  rig.happen("two");
  await soon(() => expect(rig.log().map(({ attempts }) => attempts)).toEqual([1, 1]));
  const { signal } = new AbortController();
  expect(await rig.webhooks.test(webhook.id, signal)).toMatchObject({ outcome: "refused", status: 503 });
  rig.receiver.answer = withStatus(200);
  expect(await rig.webhooks.test(webhook.id, signal)).toMatchObject({ outcome: "delivered", error: null });
  const accepted = await rig.receiver.took(3);
  expect(accepted.map(({ type }) => type)).toEqual(["webhook.test", "machine.running", "machine.running"]);
});

test("order and at-least-once hold whatever the receiver does and however often the platform starts again", async () => {
  const answers = fc.array(fc.constantFrom<number | "cut" | "reset">(200, 200, 500, 301, "cut", "reset"), {
    minLength: 1,
    maxLength: 12,
  });
  const steps = fc.array(fc.constantFrom("one", "two", null, "restart"), { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(answers, steps, async (behaviour, happening) => {
      const rig = await openRig({ clock: new FastClock() });
      hook(rig);
      let asked = 0;
      rig.receiver.answer = (response, _received, request) => {
        asked += 1;
        // It comes back in the end: every delivery has 11 attempts.
        const next = asked > 8 ? 200 : behaviour[asked % behaviour.length];
        if (next === "reset") request.socket.resetAndDestroy();
        else if (next === "cut") {
          response.writeHead(200, { "content-length": "10" }).write("half");
          setImmediate(() => request.socket.destroy());
        } else response.writeHead(next ?? 200).end();
      };
      for (const step of happening)
        if (step === "restart") await rig.restart();
        else rig.happen(step, { data: { step } });
      const wanted = happening.filter((step) => step !== "restart").length;
      const taken = () => new Set(numbers(rig.receiver.accepted)).size;
      await soon(() => expect(taken()).toBe(wanted));
      for (const machine of ["one", "two", null]) {
        const own = rig.receiver.received.filter(({ data }) => data.step === machine);
        // Nothing is sent before what came earlier was accepted; something may come again.
        const order = numbers(own);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
      await rig.webhooks.close();
    }),
    { numRuns: 25 },
  );
}, 120_000);

test("no more than four requests of a webhook, and 32 of all, are under way at once", async () => {
  const rig = await openRig();
  let open = 0;
  let most = 0;
  const held: (() => void)[] = [];
  rig.receiver.answer = (response) => {
    open += 1;
    most = Math.max(most, open);
    held.push(() => {
      open -= 1;
      response.end();
    });
  };
  hook(rig);
  for (let count = 0; count < 8; count += 1) rig.happen(`machine ${count}`);
  await rig.receiver.has(4);
  await quietFor(200);
  expect(most).toBe(4);
  for (let count = 0; count < 11; count += 1) hook(rig);
  for (let count = 0; count < 8; count += 1) rig.happen(`machine ${count}`);
  await rig.receiver.has(32);
  await quietFor(200);
  expect(most).toBe(32);
  rig.receiver.answer = withStatus(200);
  for (const release of held) release();
  // Each was told of what happened since it was created, and of the webhooks that came later.
  await rig.receiver.took(8 + 12 * 8);
  expect(most).toBe(32);
});

test("the receivers of one app that hang leave places for others", async () => {
  const rig = await openRig();
  rig.store.apps.insert({ name: "bank", createdAt: "" });
  rig.receiver.answer = () => {};
  for (let count = 0; count < 10; count += 1) hook(rig, { apps: ["shop"], events: ["machine"] });
  const other = await openReceiver();
  hook(rig, { apps: ["bank"], url: other.url });
  for (let count = 0; count < 4; count += 1) rig.happen(`machine ${count}`);
  await rig.receiver.has(8);
  rig.happen("one", { app: "bank" });
  await other.took(1);
  await quietFor(200);
  expect(rig.receiver.received).toHaveLength(8);
  // One whose attempts still wait for a place is removed at once, too.
  for (const { id } of rig.webhooks.list()) await rig.webhooks.remove(id);
  expect(rig.webhooks.counts.waiting).toBe(0);
});

test("a delivery that could not be noted, because the disk was full, is repeated", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock });
  hook(rig);
  const full = vi.spyOn(rig.store.deliveries, "delivered").mockImplementationOnce(() => {
    throw new Error("the disk is full");
  });
  rig.happen("one");
  await soon(() => expect(rig.logged).toMatchObject([{ message: expect.stringContaining("is repeated") }]));
  clock.move(10_000);
  const [first, second] = await rig.receiver.has(2);
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  await soon(() => expect(rig.log()).toMatchObject([{ state: "delivered" }]));
  expect(full).toHaveBeenCalledTimes(2);
});

test("events that could not be taken in, because the disk was full, come later", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock });
  vi.spyOn(rig.store.deliveries, "takeIn").mockImplementationOnce(() => {
    throw new Error("the disk is full");
  });
  hook(rig);
  rig.happen("one");
  await soon(() => expect(rig.logged).toHaveLength(1));
  clock.move(10_000);
  await rig.receiver.took(1);
});

describe("a receiver that", () => {
  test("is slow is given up, and holds up no other", async () => {
    const rig = await openRig({ settings: { webhookTimeoutMs: 300 } });
    hook(rig);
    const quick = await openReceiver();
    rig.webhooks.create({ ...EVERYTHING, url: quick.url });
    rig.receiver.answer = () => {};
    for (let count = 0; count < 50; count += 1) rig.happen(`machine ${count}`);
    await quick.took(50);
    await soon(() =>
      expect(rig.webhooks.deliveries(rig.webhooks.list()[0]?.id ?? "", 1000).at(-1)?.last).toMatchObject({
        status: null,
        error: "The receiver did not answer within 0.3 s.",
      }),
    );
    expect(rig.webhooks.counts.attempts.timeout).toBeGreaterThan(0);
    // At first four at a time, and from then on one.
    expect(rig.receiver.received.length).toBeLessThan(20);
  });

  test("answers without an end is not read to it", async () => {
    const rig = await openRig();
    hook(rig);
    let sent = 0;
    rig.receiver.answer = (response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384))) sent += 16_384;
      };
      response.on("drain", more);
      more();
    };
    rig.happen("one");
    await soon(() => expect(rig.log()[0]?.state).toBe("delivered"));
    await quietFor(100);
    const before = sent;
    await quietFor(100);
    expect(sent).toBe(before);
  });

  test.each([
    ["redirects inwards", 307],
    ["redirects inwards as a GET", 302],
  ])("%s is not followed", async (_, status) => {
    const inside = await openReceiver();
    const rig = await openRig();
    hook(rig);
    rig.receiver.answer = withStatus(status, { location: inside.url });
    rig.happen("one");
    await soon(() => expect(rig.log()[0]?.last?.error).toMatch(/a redirect, which webhooks do not follow/));
    expect(inside.received).toEqual([]);
  });

  test.each([
    [
      "changes the protocol, which nobody asked for,",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      /answered 101\./,
    ],
    ["closes without an answer", "", /could not be reached: /],
  ])("%s has not got the event, and can be removed", async (_, answer, why) => {
    const rig = await openRig({ clock: new HeldClock() });
    const { webhook } = hook(rig);
    rig.receiver.answer = (_response, _received, { socket }) => void socket.end(answer);
    rig.happen("one");
    await soon(() => expect(rig.log()[0]).toMatchObject({ state: "pending", attempts: 1 }));
    expect(rig.log()[0]?.last?.error).toMatch(why);
    const { outcome } = await rig.webhooks.test(webhook.id, AbortSignal.timeout(slowed(10_000)));
    expect(outcome).toBe(answer === "" ? "unreachable" : "refused");
    await rig.webhooks.remove(webhook.id);
  });

  test("ends its answer with the connection has got the event", async () => {
    const rig = await openRig();
    hook(rig);
    rig.receiver.answer = (_response, _received, { socket }) => void socket.end("HTTP/1.1 200 OK\r\n\r\nthank you");
    rig.happen("one");
    await soon(() => expect(rig.log()[0]?.state).toBe("delivered"));
    expect(rig.log()[0]?.attempts).toBe(1);
  });

  test.each([
    ["closes in the middle of its answer", "cut"],
    ["resets the connection", "reset"],
  ])("%s has not got the event, and gets it again", async (_, how) => {
    const clock = new HeldClock();
    const rig = await openRig({ clock });
    hook(rig);
    rig.receiver.answer = (response, _received, request) => {
      if (how === "reset") return void request.socket.resetAndDestroy();
      response.writeHead(200, { "content-length": "10" }).write("half");
      setImmediate(() => request.socket.destroy());
    };
    rig.happen("one");
    await soon(() => expect(rig.log()[0]?.last?.error).toMatch(/^The receiver could not be reached: .*\.$/));
    rig.receiver.answer = withStatus(200);
    clock.move(10_000);
    const [first, second] = await rig.receiver.has(2);
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(second?.headers["webhook-timestamp"]).not.toBe(first?.headers["webhook-timestamp"]);
  });

  test("is not there is tried again", async () => {
    const rig = await openRig({ clock: new HeldClock() });
    const gone = await Receiver.open();
    const { url } = gone;
    await gone.close();
    hook(rig, { url });
    rig.happen("one");
    await soon(() => expect(rig.log()[0]).toMatchObject({ state: "pending", attempts: 1 }));
    expect(rig.log()[0]?.last?.error).toMatch(/ECONNREFUSED/);
    expect(rig.webhooks.counts.attempts.unreachable).toBe(1);
  });
});

/** Names lead where the test says, whatever the DNS knows. */
const leadsTo = (...addresses: string[]) =>
  ((_name: string, _options: object, done: (error: null, found: object[]) => void) => {
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    done(null, found);
  }) as never;

describe("a name that", () => {
  test.each([["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:127.0.0.1"]])(
    "leads to %s is not connected to",
    async (address) => {
      const settings = { webhookPrivateAddresses: "refuse" } as const;
      const rig = await openRig({ settings, sending: { lookup: leadsTo(address) } });
      hook(rig, { url: `http://receiver.example:${rig.receiver.port}/` });
      rig.happen("one");
      await soon(() => expect(rig.log()[0]?.last?.error).toMatch(/^receiver\.example leads to this host or a/));
      expect(rig.webhooks.counts.attempts.blocked).toBe(1);
      expect(rig.receiver.received).toEqual([]);
    },
  );

  test("leads to public and private addresses is connected to at the public ones only", async () => {
    const lookup = leadsTo("10.0.0.1", "192.0.2.1", "::ffff:10.0.0.1", "2001:db8::1");
    const ask = (policy: boolean, all: boolean) =>
      new Promise((resolve) => {
        const done = (...given: unknown[]) => resolve(given.slice(1));
        guardedLookup({ privateAddresses: policy, http: false, blocked: networkList([]) }, lookup)(
          "receiver.example",
          { all },
          done,
        );
      });
    expect(await ask(false, true)).toEqual([
      [
        { address: "192.0.2.1", family: 4 },
        { address: "2001:db8::1", family: 6 },
      ],
    ]);
    expect(await ask(false, false)).toEqual(["192.0.2.1", 4]);
    expect(await ask(true, false)).toEqual(["10.0.0.1", 4]);
  });
});

test("over TLS, a receiver must prove who it is", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock });
  const { certFile, keyFile, cert } = selfSigned(rig.folder, "receiver", ["receiver.example"]);
  const tls = await openReceiver({ cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") });
  const lookup = leadsTo("127.0.0.1");
  const url = `https://receiver.example:${tls.port}/`;
  const distrusting = await openRig({ clock, sending: { lookup } });
  distrusting.webhooks.create({ ...EVERYTHING, url });
  distrusting.happen("one");
  await soon(() => expect(distrusting.log()[0]?.last?.error).toMatch(/self-signed certificate/));
  const trusting = await openRig({ clock, sending: { lookup, ca: cert } });
  trusting.webhooks.create({ ...EVERYTHING, url });
  trusting.happen("one");
  await tls.took(1);
});

test("events that are gone before they were taken are told as a gap", async () => {
  const rig = await openRig();
  const { webhook } = hook(rig);
  await rig.webhooks.disable(webhook.id);
  const { outbox } = rig.store;
  for (let count = 0; count < 101_000; count += 1)
    outbox.add({ type: "test.one", at: "", app: null, machine: null, data: {} });
  rig.happen("one");
  await rig.webhooks.update(webhook.id, { events: ["machine"] });
  await rig.webhooks.enable(webhook.id);
  const [gap, event] = await rig.receiver.took(2);
  expect(gap).toMatchObject({ type: "gap", data: { until: (outbox.oldest() ?? 0) - 1 } });
  expect(event).toMatchObject({ type: "machine.running" });
}, 60_000);

test("webhooks that catch up take turns, and leave the event loop to others in between", async () => {
  const rig = await openRig();
  const all = Array.from({ length: 3 }, () => hook(rig, { events: ["machine"] }).webhook);
  for (const { id } of all) await rig.webhooks.disable(id);
  const { outbox } = rig.store;
  for (let block = 0; block < 10; block += 1) {
    for (let count = 0; count < 500; count += 1)
      outbox.add({ type: "test.one", at: "", app: null, machine: null, data: {} });
    // The stream is told of them.
    await new Promise((resolve) => setImmediate(resolve));
  }
  rig.happen("one");
  // Enables them all before they read, as a start of the platform does.
  for (const { id } of all) rig.store.webhooks.enable(id, { skip: false });
  let round = 0;
  const count = () => {
    round += 1;
    rounds = setImmediate(count);
  };
  let rounds = setImmediate(count);
  onTestFinished(() => clearImmediate(rounds));
  const read: number[] = [];
  const { after } = outbox;
  vi.spyOn(outbox, "after").mockImplementation((sequence, limit) => {
    const found = after(sequence, limit);
    if (found.length === 500) read.push(round);
    return found;
  });
  await rig.restart();
  await rig.receiver.took(3);
  // Except for the newest, which are in memory.
  expect(read.length).toBeGreaterThanOrEqual(3 * 8);
  expect(new Set(read).size).toBe(read.length);
});

test("the queue is bounded: what does not fit waits in the stream, and arrives", async () => {
  const clock = new HeldClock();
  const rig = await openRig({ clock, maxWaiting: 10 });
  hook(rig);
  rig.receiver.answer = withStatus(500);
  // The stream is read in blocks of 500.
  const count = 600;
  for (let index = 0; index < count; index += 1) rig.happen(`machine ${index % 3}`);
  await soon(() => expect(rig.webhooks.counts.waiting).toBeGreaterThan(400));
  await quietFor(200);
  expect(rig.webhooks.counts.waiting).toBeLessThanOrEqual(500);
  // A webhook that reads no further is not a slow client.
  expect(rig.stream.readers()).toEqual({ count: 0, lag: 0 });
  rig.receiver.answer = withStatus(200);
  clock.move(10_000);
  const accepted = await rig.receiver.took(count);
  for (const machine of [0, 1, 2]) {
    const own = numbers(of(accepted, `machine ${machine}`));
    expect(own).toEqual(own.toSorted((a, b) => a - b));
  }
  await soon(() => expect(rig.log()).toHaveLength(KEPT_DELIVERIES));
});

test.each([
  ["gets its last events, and", [], ["machine.stopped", "app.deleted"]],
  ["that is told only of machines gets", ["machine"], ["machine.stopped"]],
])("an app's webhook %s nothing of a later app of the same name", async (_, events, last) => {
  const rig = await openRig();
  hook(rig, { apps: ["shop"], events });
  rig.happen("one", { type: "machine.stopped" });
  await rig.receiver.took(1);
  const { apps } = rig.store;
  apps.delete("shop");
  apps.insert({ name: "shop", createdAt: "" });
  rig.happen("one", { type: "machine.created" });
  rig.happen("one", { app: "bank" });
  await rig.receiver.took(last.length);
  await quietFor(200);
  expect(rig.receiver.received.map(({ type }) => type)).toEqual(last);
  // The same after a restart.
  await rig.restart();
  rig.happen("one");
  await quietFor(200);
  expect(rig.receiver.received).toHaveLength(last.length);
});

test("an app that is added later brings nothing of an earlier app of its name", async () => {
  const rig = await openRig();
  const { webhook } = hook(rig, { apps: ["shop"] });
  await rig.webhooks.disable(webhook.id);
  const { apps } = rig.store;
  apps.insert({ name: "bank", createdAt: "" });
  rig.happen("old", { app: "bank" });
  apps.delete("bank");
  apps.insert({ name: "bank", createdAt: "" });
  rig.happen("own");
  await rig.webhooks.update(webhook.id, { apps: ["bank", "shop"] });
  await rig.webhooks.enable(webhook.id);
  rig.happen("new", { app: "bank" });
  const accepted = await rig.receiver.took(2);
  await quietFor(200);
  expect(accepted.map(({ data }) => data.machine_id)).toEqual(["own", "new"]);
  // From everything to one app, and from one app to everything, nothing is lost.
  await rig.webhooks.update(webhook.id, { apps: null });
  await rig.webhooks.disable(webhook.id);
  rig.happen("kept");
  await rig.webhooks.update(webhook.id, { apps: ["shop"] });
  await rig.webhooks.enable(webhook.id);
  expect((await rig.receiver.took(3)).at(-1)?.data.machine_id).toBe("kept");
});

describe("secrets", () => {
  test("are rotated with an overlap, in which both sign", async () => {
    const clock = new HeldClock();
    const rig = await openRig({ clock });
    const { webhook, secret: old } = hook(rig);
    const { secret } = await rig.webhooks.rotate(webhook.id, 60_000);
    const signatures = async (count: number) => {
      rig.happen("one");
      return (await rig.receiver.took(count)).at(-1)?.headers["webhook-signature"]?.split(" ").length;
    };
    expect(await signatures(1)).toBe(2);
    clock.move(61_000);
    expect(await signatures(2)).toBe(1);
    expect(secret).not.toBe(old);
  });

  test("are not in the database, and what they need is said when their key is gone", async () => {
    const clock = new HeldClock();
    const rig = await openRig({ clock });
    const { webhook, secret } = hook(rig);
    rig.happen("one");
    await rig.receiver.took(1);
    const stored = ["hibernaut.db", "hibernaut.db-wal"].map((file) => readFileSync(join(rig.folder, file), "latin1"));
    expect(stored.join("")).not.toContain(secret.slice("whsec_".length));
    expect(stored.join("")).toContain(webhook.id);
    const keyFile = join(rig.folder, "secrets.key");
    const key = readFileSync(keyFile);
    rmSync(keyFile);
    rig.happen("one");
    await soon(() => expect(rig.log()[1]?.last?.error).toMatch(/secrets\.key, is missing/));
    // No second key is made, with which the first one's secrets would be lost.
    expect(() => hook(rig)).toThrow(/is missing/);
    writeFileSync(keyFile, key);
    clock.move(10_000);
    await rig.receiver.took(2);
  });
});
