/** The stream of events, as a program reads it: nothing is missed, nothing comes twice, and a gap is told. */
import { getEventListeners } from "node:events";
import { setImmediate as macrotask } from "node:timers/promises";
import { CheckResults, tellChecks } from "@hibernaut/checks";
import { HibernautClient, type StreamEntry, type StreamEvent } from "@hibernaut/client";
import type { MachineRecord } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { createToken } from "../../api/src/tokens.ts";
import { type TestApi, testApi } from "../../api/test/helpers.ts";
import { isOfType } from "../src/filter.ts";
import { EventStream, type StreamStart } from "../src/stream.ts";

let server: TestApi;
let client: HibernautClient;
beforeEach(async () => {
  ({ server } = await testApi());
  client = new HibernautClient({ apiUrl: server.url, token: server.token });
});

const CONFIG = { image: "app", services: [{ internal_port: 8080 }] };

async function all(stream: AsyncIterable<StreamEntry>): Promise<StreamEvent[]> {
  const found: StreamEvent[] = [];
  for await (const event of stream) if ("sequence" in event) found.push(event);
  return found;
}

/** Reads this many events of a stream that does not end. */
async function take(stream: AsyncGenerator<StreamEntry>, count: number) {
  const found: StreamEntry[] = [];
  while (found.length < count) found.push((await stream.next()).value as StreamEvent);
  return found;
}

test("a machine's life is told in order, with how it was woken", async () => {
  const following = client.followEvents({ app: "shop" });
  const first = following.next();
  const { machine_id: id } = await client.createMachine("shop", { config: CONFIG });
  await client.waitForMachine("shop", id, { state: "running" });
  await client.suspendMachine("shop", id);
  await client.waitForMachine("shop", id, { state: "suspended" });
  await client.startMachine("shop", id);
  await client.waitForMachine("shop", id, { state: "running" });
  const events = [(await first).value as StreamEvent, ...((await take(following, 6)) as StreamEvent[])];
  await following.return();
  expect(events.map(({ type }) => type)).toEqual(
    ["created", "starting", "running", "suspending", "suspended", "starting", "running"].map(
      (name) => `machine.${name}`,
    ),
  );
  expect(events.every(({ app_name: app, machine_id: machine }) => app === "shop" && machine === id)).toBe(true);
  expect(events.at(2)?.data).toMatchObject({ start: { kind: "cold" }, from: "starting", to: "running" });
  expect(events.at(-1)?.data).toMatchObject({ start: { kind: "resume" } });
});

test("apps, hostnames, secrets, volumes and releases are told, and no value of a secret", async () => {
  await client.addHostname("shop", "shop.example.com");
  await client.setSecrets("shop", { KEY: "a value that nobody may see" });
  await client.unsetSecret("shop", "KEY");
  await client.removeHostname("shop", "shop.example.com");
  await client.destroyApp("shop");
  const events = await all(client.readEvents());
  expect(events.map(({ type }) => type)).toEqual([
    "app.created",
    "hostname.added",
    "secret.set",
    "secret.unset",
    "hostname.removed",
    "app.deleted",
  ]);
  expect(JSON.stringify(events)).not.toContain("nobody may see");
});

test("a reader who comes back continues after the last event that it had", async () => {
  for (const name of ["a", "b", "c", "d"]) await client.createApp(name);
  const events = await all(client.readEvents({ since: 0 }));
  expect(events.map(({ app_name: app }) => app)).toEqual(["shop", "a", "b", "c", "d"]);
  for (const [index, { sequence }] of events.entries())
    expect(await all(client.readEvents({ since: sequence }))).toEqual(events.slice(index + 1));
  expect((await all(client.readEvents({ tail: 2 }))).map(({ app_name: app }) => app)).toEqual(["c", "d"]);
});

test("only what was asked for comes", async () => {
  await client.createApp("other");
  const { machine_id: id } = await client.createMachine("shop", { config: CONFIG });
  await client.waitForMachine("shop", id, { state: "running" });
  const types = async (options: object) => (await all(client.readEvents(options))).map(({ type }) => type);
  expect(await types({ type: "app" })).toEqual(["app.created", "app.created"]);
  expect(await types({ type: ["machine.running", "app.deleted"] })).toEqual(["machine.running"]);
  for (let count = 0; count < 600; count += 1)
    server.world.store.outbox.add({ type: "test.one", at: "", app: "shop", machine: null, data: {} });
  // The last ones of those that were asked for, however many others came since.
  expect(await types({ type: "app", tail: 1 })).toEqual(["app.created"]);
  expect(await types({ app: "other" })).toEqual(["app.created"]);
  expect(
    (await all(client.readEvents({ app: "shop", machine: id.slice(0, 5) }))).every((one) => one.machine_id === id),
  ).toBe(true);
  await expect(client.readEvents({ app: "nope" }).next()).rejects.toThrow(/There is no app nope/);
  await expect(client.readEvents({ machine: id }).next()).rejects.toThrow(/`machine` needs `app`/);
});

describe("a token that is limited to an app", () => {
  const limited = () => {
    const { token } = createToken(server.tokens, "reader", { scopes: ["read"], apps: ["shop"] });
    return new HibernautClient({ apiUrl: server.url, token });
  };
  const typesOf = (events: readonly StreamEntry[]) => events.map(({ type }) => type);

  test("sees nothing of an earlier app of the same name", async () => {
    await client.setSecrets("shop", { OF_THE_EARLIER: "x" });
    await client.destroyApp("shop");
    await client.createApp("shop");
    await client.addHostname("shop", "shop.example.com");
    for (const start of [{ since: 0 }, { tail: 100 }, { since: 0, app: "shop" }, { tail: 100, app: "shop" }])
      expect(typesOf(await all(limited().readEvents(start)))).toEqual(["app.created", "hostname.added"]);
    expect(typesOf(await all(client.readEvents({ since: 0 })))).toContain("secret.set");
  });

  test("and is in use when the app is deleted hears of that, and nothing of a later one", async () => {
    await client.createApp("bank");
    const { token } = createToken(server.tokens, "two", { scopes: ["read"], apps: ["shop", "bank"] });
    const reader = new HibernautClient({ apiUrl: server.url, token }).followEvents({ since: 0 });
    expect(typesOf(await take(reader, 2))).toEqual(["app.created", "app.created"]);
    await client.destroyApp("shop");
    await client.createApp("shop");
    await client.destroyApp("bank");
    const rest = (await take(reader, 2)) as StreamEvent[];
    await reader.return();
    expect(rest.map(({ type, app_name: app }) => `${type} ${app}`)).toEqual(["app.deleted shop", "app.deleted bank"]);
  });
});

test("events that are no longer kept are told as a gap, and so is a number from another platform", async () => {
  const { outbox } = server.world.store;
  for (let count = 0; count < 101_000; count += 1)
    outbox.add({ type: "test.one", at: "", app: null, machine: null, data: {} });
  const [gap, next] = await take(client.followEvents({ since: 1 }), 2);
  const oldest = outbox.oldest() ?? 0;
  expect(gap).toEqual({ type: "gap", after: 1, until: oldest - 1 });
  expect(next).toMatchObject({ sequence: oldest });
  const [ahead] = await take(client.followEvents({ since: 10_000_000 }), 1);
  expect(ahead).toEqual({ type: "gap", after: outbox.newest(), until: outbox.newest() });
});

test("as a browser sees it: an id for each event, and Last-Event-ID continues after it", async () => {
  await client.createApp("other");
  const get = (headers: Record<string, string>) =>
    fetch(`${server.url}/v1/stream?follow=0`, { headers: { authorization: `Bearer ${server.token}`, ...headers } });
  const reply = await get({ "last-event-id": "1" });
  expect(reply.headers.get("content-type")).toBe("text/event-stream");
  expect(reply.headers.get("cache-control")).toBe("no-store");
  expect(await reply.text()).toMatch(
    /^retry: 1000\n\nid: 1\n\nid: 2\nevent: app\.created\ndata: \{"sequence":2,.*"app_name":"other","machine_id":null,.*\}\n\n$/,
  );
  expect(await (await get({ "last-event-id": "nonsense" })).text()).toBe("retry: 1000\n\nid: 2\n\n");
});

test("a browser that still has a position in a cluster, which this host has left, hears of a gap", async () => {
  const headers = { authorization: `Bearer ${server.token}`, "last-event-id": "a:1,b:77" };
  const reply = await fetch(`${server.url}/v1/stream?follow=0`, { headers });
  const newest = server.world.store.outbox.newest();
  expect(await reply.text()).toContain(`event: gap\ndata: {"after":${newest},"until":${newest}}`);
  // A program that asks so is told what is wrong.
  const asked = await fetch(`${server.url}/v1/stream?follow=0&since=a:1`, {
    headers: { authorization: headers.authorization },
  });
  expect(asked.status).toBe(400);
});

test("two hundred readers get every event of a busy platform, once and in order", async () => {
  const readers = Array.from({ length: 200 }, () => client.followEvents({ since: 1 }));
  const reading = Promise.all(readers.map((reader) => take(reader, 300)));
  for (let count = 0; count < 300; count += 1) {
    server.world.store.outbox.add({ type: "test.one", at: "", app: null, machine: null, data: { count } });
    if (count % 50 === 0) await client.getHealth();
  }
  const expected = Array.from({ length: 300 }, (_, index) => index + 2);
  for (const events of await reading)
    expect(events.map((event) => "sequence" in event && event.sequence)).toEqual(expected);
});

test.each<[string, StreamStart]>([
  ["reads all there was", { since: 0 }],
  ["looks for the last events of a type that is rare", { tail: 10 }],
])("while a reader %s, others have their turns", async (_, start) => {
  const { outbox } = server.world.store;
  for (let count = 0; count < 10_000; count += 1)
    outbox.add({ type: "test.one", at: "", app: null, machine: null, data: {} });
  // What the events themselves woke is over.
  await macrotask();
  let turns = 0;
  let reading = true;
  const turn = (): void => {
    turns += 1;
    if (reading) setImmediate(turn);
  };
  const stream = new EventStream(outbox);
  const { signal } = new AbortController();
  setImmediate(turn);
  const read = stream.read({ types: ["app.created"] }, start, { follow: false, signal });
  const found = (await Array.fromAsync(read)).flat().filter((one) => "event" in one);
  reading = false;
  stream.close();
  expect(found).toHaveLength(1);
  // As many as there are blocks of 500.
  expect(turns).toBeGreaterThanOrEqual(20);
});

test("a check is told when it changes, not at every result, and a full disk is no reason to end", () => {
  const results = new CheckResults();
  const told: string[] = [];
  const faults: unknown[] = [];
  let now = 0;
  let full = false;
  const outbox = {
    ...server.world.store.outbox,
    add({ type }: { type: string }) {
      if (full) throw new Error("the disk is full");
      told.push(type);
    },
  };
  const machines = { ...server.world.store.machines, get: () => ({ app: "shop", name: "one" }) as MachineRecord };
  tellChecks(results, { machines, outbox }, { onFault: (error) => faults.push(error), now: () => now });
  results.begin("id", [], []);
  const result = (status: "passing" | "critical") =>
    results.set("id", { name: "up", status, output: "", updated_at: "" });
  for (let count = 0; count < 5; count += 1) result("passing");
  result("critical");
  expect(told).toEqual(["machine.check_passing"]);
  now = 11_000;
  full = true;
  result("critical");
  expect(faults).toHaveLength(1);
  full = false;
  result("critical");
  expect(told).toEqual(["machine.check_passing", "machine.check_critical"]);
});

test("a reader who waits for long leaves nothing behind", async () => {
  const { outbox } = server.world.store;
  const end = new AbortController();
  const reader = new EventStream(outbox).read({ types: ["nothing"] }, {}, { follow: true, signal: end.signal });
  await reader.next();
  for (let count = 0; count < 20; count += 1) {
    outbox.add({ type: "test.one", at: "", app: null, machine: null, data: {} });
    await reader.next();
  }
  expect(getEventListeners(end.signal, "abort").length).toBeLessThan(3);
  end.abort();
  await reader.return();
});

test("a group of types is everything below its name", () => {
  expect(isOfType("machine.suspended", "machine")).toBe(true);
  expect(isOfType("machine.suspended", "machine.*")).toBe(true);
  expect(isOfType("machine.suspended", "machine.susp")).toBe(false);
  expect(isOfType("machines.suspended", "machine")).toBe(false);
  fc.assert(fc.property(fc.stringMatching(/^[a-z.]+$/), (type) => isOfType(type, type) && isOfType(type, "*")));
});
