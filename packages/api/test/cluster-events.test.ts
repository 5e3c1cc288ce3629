/** The stream of events of a cluster, as a program reads it from any host. */
import { HibernautClient, type StreamEntry, type StreamEvent, type StreamMissing } from "@hibernaut/client";
import { KEYS } from "@hibernaut/cluster/keys";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;
let c: ApiHost;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b, c] = cluster.hosts;
  await clientOf(a).createApp("shop");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
});
afterAll(() => cluster.close());

function clientOf(host: ApiHost, token = cluster.token): HibernautClient {
  return new HibernautClient({ apiUrl: host.url, token });
}

/** Something happens on a host: it says so with a name. */
function happens(on: ApiHost, name: string, app = "shop"): void {
  const data = { name };
  on.world.store.outbox.add({
    type: "machine.checked",
    at: new Date().toISOString(),
    app,
    machine: "f".repeat(14),
    data,
  });
}

/** Follows the stream of a host, until the test ends. */
function follow(host: ApiHost, options: { since?: string; tail?: number; token?: string } = {}) {
  const { token, ...rest } = options;
  const end = new AbortController();
  const connected = Promise.withResolvers<void>();
  const heard: StreamEntry[] = [];
  const wishes = new Set<() => void>();
  const stream = clientOf(host, token).followEvents({
    ...rest,
    signal: end.signal,
    onConnected: () => connected.resolve(),
  });
  const reading = (async () => {
    for await (const one of stream) {
      heard.push(one);
      for (const wish of wishes) wish();
    }
  })().catch(() => {}); // the test ends it
  const stop = async () => {
    end.abort();
    await reading;
  };
  onTestFinished(stop);
  return {
    connected: connected.promise,
    heard,
    stop,
    names: () =>
      heard.filter((one): one is StreamEvent => "sequence" in one).map(({ data }) => String(data["name"] ?? "")),
    /** Resolves once it holds. */
    async until(holds: () => boolean): Promise<void> {
      if (holds()) return;
      await new Promise<void>((resolve) => {
        const wish = () => {
          if (!holds()) return;
          wishes.delete(wish);
          resolve();
        };
        wishes.add(wish);
      });
    },
  };
}

test("any host tells what happens on all of them, each event once", async () => {
  const streams = cluster.hosts.map((host) => follow(host));
  await Promise.all(streams.map(({ connected }) => connected));
  for (const host of cluster.hosts) happens(host, `on ${host.host.name}`);
  await clientOf(b).createApp("blog");
  for (const stream of streams) {
    await stream.until(() => stream.heard.length >= 4);
    expect(stream.names().filter(Boolean).toSorted()).toEqual(["on a", "on b", "on c"]);
    // What all hosts share, each of them writes down, and one tells.
    expect(stream.heard.filter(({ type }) => type === "app.created")).toHaveLength(1);
    expect(stream.heard.find(({ type }) => type === "machine.checked")).toMatchObject({ host: expect.any(String) });
  }
});

test("a reader continues at another host where it was, and misses nothing", async () => {
  const first = follow(a);
  await first.connected;
  happens(b, "one");
  happens(c, "two");
  await first.until(() => first.heard.length === 2);
  const last = first.heard.at(-1) as StreamEvent;
  await first.stop();
  happens(b, "three");
  happens(a, "four");
  happens(c, "five");
  const second = follow(b, { since: last.position ?? "" });
  await second.until(() => second.heard.length >= 3);
  happens(c, "six");
  await second.until(() => second.heard.length >= 4);
  expect(second.names().toSorted()).toEqual(["five", "four", "six", "three"]);
});

test("the last events are those of all hosts, by time", async () => {
  const names = ["p", "q", "r", "s", "t"];
  for (const [index, name] of names.entries()) {
    const host = cluster.hosts[index % 3] as ApiHost;
    const at = new Date(Date.now() + index).toISOString();
    host.world.store.outbox.add({ type: "machine.checked", at, app: "shop", machine: null, data: { name } });
  }
  const events = await Array.fromAsync(clientOf(c).readEvents({ tail: 3 }));
  expect(events.map((one) => ("data" in one ? one.data["name"] : one))).toEqual(["r", "s", "t"]);
});

test("a host that goes away is named, and its events come by themselves once it is back", async () => {
  const stream = follow(a);
  await stream.connected;
  await cluster.setUp("c", false);
  await stream.until(() => stream.heard.some(({ type }) => type === "missing"));
  expect(stream.heard.at(-1)).toEqual({ type: "missing", hosts: ["c"] });
  happens(c, "meanwhile");
  happens(b, "from b");
  await stream.until(() => stream.names().includes("from b"));
  expect(stream.names()).not.toContain("meanwhile");
  await cluster.setUp("c", true);
  await stream.until(() => stream.names().includes("meanwhile"));
  expect(stream.heard.filter(({ type }) => type === "missing").at(-1)).toEqual({ type: "missing", hosts: [] });
  expect(stream.names().filter((name) => name === "meanwhile")).toHaveLength(1);
});

test("a host that leaves the cluster and joins again under its name is heard again", async () => {
  const stream = follow(a);
  await stream.connected;
  const missing = () =>
    stream.heard.filter(({ type }) => type === "missing").map((one) => (one as StreamMissing).hosts);
  await cluster.setUp("c", false);
  await stream.until(() => missing().length === 1);
  await cluster.write({ [`${KEYS.members}c`]: null });
  // No member, so nobody misses it.
  await stream.until(() => missing().length === 2);
  expect(missing()).toEqual([["c"], []]);
  await cluster.write({ [`${KEYS.members}c`]: {} });
  await cluster.setUp("c", true);
  happens(c, "again");
  await stream.until(() => stream.names().includes("again"));
  expect(stream.names().filter((name) => name === "again")).toHaveLength(1);
});

test("a token hears of its apps alone, and of the machine that it names on whichever host", async () => {
  await clientOf(a).createApp("mine");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
  const { token } = await clientOf(a).createToken("limited", { scopes: ["read"], apps: ["mine"] });
  for (const { host } of cluster.hosts) await host.shared.catchUp();
  const stream = follow(a, { token, since: "0" });
  await stream.connected;
  happens(b, "not mine");
  happens(b, "mine", "mine");
  await stream.until(() => stream.names().includes("mine"));
  expect(new Set(stream.heard.map((one) => ("app_name" in one ? one.app_name : undefined)))).toEqual(new Set(["mine"]));

  await cluster.claim(c, "shop", "f".repeat(14), "there");
  const found = await Array.fromAsync(clientOf(a).readEvents({ app: "shop", machine: "there", tail: 1 }));
  expect(found).toMatchObject([{ machine_id: "f".repeat(14) }]);
});

test("a reader that leaves takes the connections along", async () => {
  const [one, two] = [follow(a), follow(a)];
  await Promise.all([one.connected, two.connected]);
  await one.stop();
  happens(b, "still heard");
  await two.until(() => two.names().includes("still heard"));
  await two.stop();
});

test("wakes of all hosts are summed up together", async () => {
  await clientOf(a).createApp("busy");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
  for (const { host, platform } of [b, c]) {
    const { id } = await clientOf(a).createMachine("busy", { host: host.name, config: { image: "app:1" } });
    await platform.machines.wait("busy", id, ["running"], { timeoutMs: 10_000 });
  }
  const { hours } = await clientOf(a).getWakes({ hours: 2, app: "busy" });
  expect(hours).toHaveLength(2);
  expect(hours.reduce((sum, { kinds }) => sum + (kinds.cold?.count ?? 0), 0)).toBe(2);
  // What they are summed up from is between hosts.
  for (const hour of hours) expect(Object.keys(hour).toSorted()).toEqual(["from", "kinds"]);
});
