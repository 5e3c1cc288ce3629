/** A cluster through the wrong host: what belongs to another host is answered by that one, and lists have everything. */
import { once } from "node:events";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { KEYS } from "@hibernaut/cluster/keys";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { ROUTES, whereOf } from "../src/cluster/where.ts";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";
import { as } from "./helpers.ts";
import { SCOPE_TABLE } from "./scope-table.ts";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;
let c: ApiHost;
/** A running machine of app shop on host b. */
let id: string;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b, c] = cluster.hosts;
  await ask(a, "POST", "/v1/apps", { app_name: "shop" });
  id = await cluster.make(b, "shop", "web");
});
afterAll(() => cluster.close());

const ask: ApiHosts["ask"] = (...args) => cluster.ask(...args);

test("each route of apps says which host answers it, and those that are said to be answered elsewhere exist", () => {
  const patterns = Object.keys(SCOPE_TABLE).map((route) => route.replaceAll(/\{(\w+)\}/g, ":$1"));
  expect(patterns).toEqual(expect.arrayContaining(Object.keys(ROUTES)));
  // All hosts know the same of these, or each has its own certificates. A new route belongs here, or in the table.
  const A = "/v1/apps/:app_name";
  const here = [
    ...["/v1/apps", A, `${A}/hostnames`, `${A}/hostnames/:hostname`, `${A}/secrets`, `${A}/secrets/:secret_name`],
    ...[`${A}/releases`, `${A}/quota`, `${A}/previews`, `${A}/previews/:preview`],
    ...[`${A}/certificates`, `${A}/certificates/:hostname`, `${A}/certificates/:hostname/check`],
  ];
  const unsaid = patterns.filter((pattern) => {
    const [method = "", url = ""] = pattern.split(" ");
    return url.startsWith("/v1/apps") && whereOf({ method, routeOptions: { url } }) === "here" && !here.includes(url);
  });
  expect(unsaid).toEqual([]);
});

describe("a machine of another host", () => {
  test("is created there, and found by its id, its name and the beginning of its id", async () => {
    expect(b.world.store.machines.get(id)?.name).toBe("web");
    expect(a.world.store.machines.get(id)).toBeUndefined();
    for (const word of [id, "web", id.slice(0, 6)]) {
      const { status, headers, body } = await ask(a, "GET", `/v1/apps/shop/machines/${word}`);
      expect(status).toBe(200);
      expect(headers.get("hibernaut-host")).toBe("b");
      expect(body).toMatchObject({ id, name: "web", state: "running" });
    }
  });

  test("does what it is told through any host", async () => {
    expect((await ask(c, "POST", `/v1/apps/shop/machines/${id}/suspend`, {})).status).toBe(200);
    expect((await ask(a, "GET", `/v1/apps/shop/machines/${id}/wait?state=suspended&timeout=10`)).body).toMatchObject({
      ok: true,
    });
    expect((await ask(a, "POST", `/v1/apps/shop/machines/web/start`)).status).toBe(200);
    await b.platform.machines.wait("shop", id, ["running"], { timeoutMs: 10_000 });
    const { body } = await ask(a, "GET", `/v1/apps/shop/machines/web/events`);
    expect(body.map(({ type }: { type: string }) => type)).toContain("suspend");
  });

  test("has its lease there: the nonce is sent on, and only it gets through, from any host", async () => {
    const path = `/v1/apps/shop/machines/web`;
    const { nonce } = (await ask(a, "POST", `${path}/lease`)).body;
    for (const host of [a, b, c])
      expect(await ask(host, "POST", `${path}/cordon`), host.host.name).toMatchObject({
        status: 409,
        body: { error: "lease_held", details: { owner: expect.stringMatching(/^[0-9a-f]{12}$/) } },
      });
    const mine = { "hibernaut-lease-nonce": nonce };
    expect((await ask(c, "POST", `${path}/cordon`, undefined, mine)).status).toBe(200);
    expect((await ask(c, "POST", `${path}/uncordon`, undefined, mine)).status).toBe(200);
    expect((await ask(a, "DELETE", `${path}/lease`, undefined, mine)).status).toBe(200);
    expect((await ask(a, "POST", `${path}/uncordon`)).status).toBe(200);
  });

  test("an error there is the error here, under the client's request id", async () => {
    const { status, body, headers } = await ask(a, "DELETE", `/v1/apps/shop/machines/web`, undefined, {
      "x-request-id": "mine-1",
    });
    expect(status).toBe(412);
    expect(body).toMatchObject({ error: "failed_precondition", request_id: "mine-1" });
    expect(headers.get("x-request-id")).toBe("mine-1");
  });

  test("its log is followed as lines come, and the other host hears when the client leaves", async () => {
    const leave = new AbortController();
    const response = await fetch(`${a.url}/v1/apps/shop/machines/web/logs?follow=1`, {
      ...as(cluster.token),
      signal: leave.signal,
    });
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (const line of ["first line", "second line"]) {
      await b.print(id, line);
      while (!text.includes(line)) text += (await reader.read()).value ?? "";
    }
    expect(b.open.logs).toBe(1);
    leave.abort();
    await vi.waitFor(() => expect(b.open.logs).toBe(0));
  });

  test("a command streams over a WebSocket through the wrong host", async () => {
    const socket = new WebSocket(
      `${c.url.replace("http", "ws")}/v1/apps/shop/machines/web/exec?command=echo`,
      as(cluster.token),
    );
    const messages: Buffer[] = [];
    socket.on("message", (data: Buffer) => messages.push(data));
    await once(socket, "close");
    expect(messages.at(-1)?.[0]).toBe(3);
    expect(JSON.parse(String(messages.at(-1)?.subarray(1)))).toMatchObject({ timed_out: false });
  });

  test("a refused WebSocket is an HTTP error", async () => {
    const socket = new WebSocket(
      `${c.url.replace("http", "ws")}/v1/apps/shop/machines/web/exec?nonsense=1`,
      as(cluster.token),
    );
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(400);
  });

  test("tokens have no more rights there than here, and a client cannot claim to be a host", async () => {
    const { body } = await ask(a, "POST", "/v1/tokens", { name: "reader", scopes: ["read"] });
    const { headers } = as(body.token);
    expect((await ask(a, "POST", `/v1/apps/shop/machines/web/stop`, {}, headers)).status).toBe(403);
    const claims = { authorization: "", "hibernaut-peer-token": body.id, "hibernaut-peer-client": "127.9.9.9" };
    expect((await ask(b, "GET", `/v1/apps/shop/machines/web`, undefined, claims)).status).toBe(401);
  });

  test("one that moved while the request was on its way is found again", async () => {
    const moving = await cluster.make(c, "shop", "mover");
    // Host a still believes that it is on b, which knows better.
    const send = a.host.cluster.view;
    const owner = send.machines.bind(send);
    let isFirst = true;
    vi.spyOn(send, "machines").mockImplementation((app) => {
      const all = owner(app);
      if (!isFirst) return all;
      isFirst = false;
      return all.map((machine) => (machine.id === moving ? { ...machine, host: "b" } : machine));
    });
    const { status, headers } = await ask(a, "GET", `/v1/apps/shop/machines/mover`);
    expect(status).toBe(200);
    expect(headers.get("hibernaut-host")).toBe("c");
    vi.restoreAllMocks();
  });
});

test("a machine that the directory has forgotten, because it was destroyed, is still told of by its whole id", async () => {
  const config = { image: "app:1", guest: { memory_mb: 128 } };
  const made = await ask(a, "POST", "/v1/apps/shop/machines", { host: "b", config, skip_launch: true });
  // Never claimed here, as after the end of the claim.
  b.platform.machines.destroy("shop", made.body.id, { force: true });
  await b.platform.machines.wait("shop", made.body.id, ["destroyed"], { timeoutMs: 10_000 });
  const path = `/v1/apps/shop/machines/${made.body.id}`;
  expect(await ask(a, "GET", path)).toMatchObject({ status: 200, body: { state: "destroyed" } });
  expect((await ask(a, "GET", `${path}/events`)).status).toBe(200);
  expect(await ask(a, "GET", `/v1/apps/shop/machines/${made.body.id.slice(0, 8)}`)).toMatchObject({ status: 404 });
  expect(await ask(a, "GET", "/v1/apps/shop/machines/00000000000000")).toMatchObject({ status: 404 });
});

test("a change of secrets says which snapshots it discards on other hosts, also of one that was just taken", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "vault" });
  const machine = await cluster.make(b, "vault", "web");
  await cluster.publish(machine, { state: "running", route: null });
  const set = async (value: string) =>
    (await ask(a, "POST", "/v1/apps/vault/secrets", { secrets: { KEY: value } })).body;
  expect(await set("one")).toEqual({ discarded: [], pending: [machine] });
  await ask(a, "POST", `/v1/apps/vault/machines/${machine}/suspend`);
  await b.platform.machines.wait("vault", machine, ["suspended"], { timeoutMs: 10_000 });
  expect(await set("two"), "nobody has published that it sleeps").toEqual({ discarded: [machine], pending: [] });
  await ask(a, "DELETE", `/v1/apps/vault/machines/${machine}?force=true`);
  await b.platform.machines.wait("vault", machine, ["destroyed"], { timeoutMs: 10_000 });
});

test("a name in a network belongs to one app, also if all hosts give it away at the same moment", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "inn-db", network: "inn" });
  for (const each of [a, b, c]) await each.host.shared.catchUp();
  const made = [a, b, c].map(({ host }, at) =>
    host.shared.write(({ apps }) => apps.create(`inn-${at}`, { network: "inn", aliases: ["desk"] })),
  );
  expect((await Promise.allSettled(made)).map(({ status }) => status).toSorted()).toEqual([
    ...["fulfilled", "rejected", "rejected"],
  ]);
});

test("an app's network, with its address and its names, is the same on all hosts", async () => {
  const made = await ask(a, "POST", "/v1/apps", { app_name: "cafe-db", network: "cafe", aliases: ["db"] });
  expect(made.body.network).toMatchObject({ name: "cafe", aliases: ["db"] });
  await ask(a, "PATCH", "/v1/apps/cafe-db", { aliases: ["store"], wakes: ["cafe-log"] });
  const network = { ...made.body.network, aliases: ["store"], wakes: ["cafe-log"] };
  await vi.waitFor(() => expect(b.platform.apps.networkOf("cafe-db")).toEqual(network));
  expect(await ask(b, "POST", "/v1/apps", { app_name: "cafe-web", network: "cafe", aliases: ["store"] })).toMatchObject(
    {
      status: 409,
    },
  );
  await ask(a, "DELETE", "/v1/apps/cafe-db");
});

test("the public page of an app tells of its machines on other hosts", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "shown" });
  await ask(a, "PATCH", "/v1/apps/shown", { status_page: true });
  const page = async () => /class="state (\w+)"/.exec(await (await fetch(`${a.url}/status/shown`)).text())?.[1];
  expect(await page()).toBe("stopped");
  const config = { image: "app:1", guest: { memory_mb: 128 }, services: [{ internal_port: 8080 }] };
  const made = await ask(a, "POST", "/v1/apps/shown/machines", { name: "web", host: "b", config });
  await cluster.claim(b, "shown", made.body.id, "web");
  await cluster.publish(made.body.id, { state: "running", route: { lastBoot: null, healthy: true } });
  expect(await page()).toBe("up");
  await cluster.publish(made.body.id, { state: "suspended", route: { lastBoot: null, healthy: true } });
  expect(await page()).toBe("asleep");
  await cluster.setUp("b", false);
  expect(await page()).toBe("failing");
  await cluster.setUp("b", true);
  await ask(a, "DELETE", `/v1/apps/shown/machines/${made.body.id}?force=true`);
  await b.platform.machines.wait("shown", made.body.id, ["destroyed"], { timeoutMs: 10_000 });
});

describe("lists", () => {
  test("have the machines of all hosts, and those of an app count", async () => {
    const other = await cluster.make(c, "shop", "other");
    const { body, headers } = await ask(a, "GET", "/v1/apps/shop/machines");
    const ids = body.map((machine: { id: string }) => machine.id);
    expect(ids).toContain(id);
    expect(ids).toContain(other);
    expect(headers.get("hibernaut-hosts-missing")).toBeNull();
    expect((await ask(a, "GET", "/v1/apps/shop")).body.machine_count).toBe(ids.length);
    expect((await ask(a, "GET", "/v1/machines")).body).toHaveLength(ids.length);
  });

  test("show of all hosts only what the query asks for", async () => {
    await ask(a, "PATCH", "/v1/apps/shop/machines/web/metadata", { team: "search" });
    const named = async (query: string) =>
      (await ask(c, "GET", `/v1/apps/shop/machines?${query}`)).body.map(({ name }: { name: string }) => name);
    expect(await named("metadata.team=search")).toEqual(["web"]);
    expect(await named("state=running&metadata.team=shop")).toEqual([]);
    expect(await named("region=local&state=running")).toEqual(expect.arrayContaining(["web", "other"]));
    expect((await ask(c, "GET", "/v1/machines?state=none")).status).toBe(400);
  });

  test("say which hosts did not answer", async () => {
    await cluster.setUp("c", false);
    const { status, headers } = await ask(a, "GET", "/v1/apps/shop/machines");
    expect(status).toBe(200);
    expect(headers.get("hibernaut-hosts-missing")).toBe("c");
    const one = await ask(a, "GET", "/v1/apps/shop/machines/other");
    expect(one).toMatchObject({ status: 503, body: { error: "host_unreachable", details: { host: "c" } } });
    expect(one.headers.get("retry-after")).not.toBeNull();
    await cluster.setUp("c", true);
  });

  test("logs of an app have the lines of all its machines, by time", async () => {
    const other = (await ask(a, "GET", "/v1/apps/shop/machines/other")).body.id as string;
    await b.print(id, "one");
    await c.print(other, "two");
    await b.print(id, "three");
    const response = await fetch(`${a.url}/v1/apps/shop/logs?stream=stdout&limit=3`, as(cluster.token));
    const lines = (await response.text()).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { text: string }).text)).toEqual(["one", "two", "three"]);
  });

  test("logs of named machines come from the hosts that have them", async () => {
    const here = await cluster.make(a, "shop", "here");
    for (const [host, machine] of [
      [a, here],
      [b, id],
    ] as const)
      await host.print(machine, `said on ${host.host.name}`);
    const read = async (words: string) => {
      const path = `/v1/apps/shop/logs?stream=stdout&limit=1&machine=${words}`;
      const response = await fetch(a.url + path, as(cluster.token));
      return { status: response.status, text: await response.text() };
    };
    expect(await read("web")).toMatchObject({ status: 200, text: expect.stringContaining("said on b") });
    expect(await read("web,here")).toMatchObject({ status: 200, text: expect.stringContaining("said on b") });
    expect(await read("here")).toMatchObject({ status: 200, text: expect.stringContaining("said on a") });
    expect(await read("web,nobody")).toMatchObject({ status: 404, text: expect.stringContaining("nobody") });
  });

  test("usage is that of all hosts", async () => {
    const all = await ask(a, "GET", "/v1/usage?group_by=machine");
    expect(all.body.usage.map((row: { machine_id: string }) => row.machine_id)).toContain(id);
    const total = all.body.usage.reduce(
      (sum: number, row: { running_seconds: number }) => sum + row.running_seconds,
      0,
    );
    expect(all.body.total.running_seconds).toBeCloseTo(total, 3);
  });

  test("usage of an app that was only ever on another host is that of the other host", async () => {
    await ask(a, "POST", "/v1/apps", { app_name: "distant" });
    const machine = await cluster.make(b, "distant", "distant");
    for (const host of [a, b, c]) {
      const usage = await ask(host, "GET", "/v1/usage?app=distant&group_by=machine");
      expect(usage).toMatchObject({ status: 200, body: { usage: [{ machine_id: machine }] } });
      expect(usage.headers.get("hibernaut-hosts-missing")).toBeNull();
    }
    await cluster.setUp("c", false);
    onTestFinished(() => cluster.setUp("c", true));
    const partly = await ask(a, "GET", "/v1/usage?app=distant&group_by=machine");
    expect(partly).toMatchObject({ status: 200, body: { usage: [{ machine_id: machine }] } });
    expect(partly.headers.get("hibernaut-hosts-missing")).toBe("c");
    expect(await ask(a, "GET", "/v1/usage?app=nowhere")).toMatchObject({ status: 404, body: { error: "not_found" } });
  });
});

describe("a new machine", () => {
  test("goes where the app has the fewest, and not to a host that is full, draining or away", async () => {
    await ask(a, "POST", "/v1/apps", { app_name: "spread" });
    const chosen: string[] = [];
    for (let count = 0; count < 6; count++) {
      const { body } = await ask(a, "POST", "/v1/apps/spread/machines", { config: { image: "app:1" } });
      const host = cluster.hosts.find(({ world }) => world.store.machines.get(body.id) !== undefined);
      if (host === undefined) throw new Error(JSON.stringify(body));
      await cluster.claim(host, "spread", body.id, body.name);
      chosen.push(host.host.name);
    }
    expect(chosen.toSorted()).toEqual(["a", "a", "b", "b", "c", "c"]);
    await cluster.setUp("a", { memoryMb: { total: 8192, free: 10 } });
    await cluster.setUp("b", { memoryMb: { total: 8192, free: 4096 }, draining: true });
    const { body, headers } = await ask(a, "POST", "/v1/apps/spread/machines", { config: { image: "app:1" } });
    expect(headers.get("hibernaut-host")).toBe("c");
    expect(c.world.store.machines.get(body.id)).toBeDefined();
    await cluster.setUp("a", true);
    await cluster.setUp("b", true);
  });

  test("goes to the host of its volume", async () => {
    const volume = await ask(a, "POST", "/v1/apps/shop/volumes", { name: "data", size_gb: 1, host: "c" });
    expect(volume.status).toBe(201);
    const config = { image: "app:1", mounts: [{ volume: "data", path: "/data" }] };
    const { status, headers } = await ask(b, "POST", "/v1/apps/shop/machines", { config });
    expect(status).toBe(201);
    expect(headers.get("hibernaut-host")).toBe("c");
    expect((await ask(b, "GET", `/v1/apps/shop/volumes/${volume.body.id}`)).body).toMatchObject({
      name: "data",
      host: "c",
    });
    // The only one of that name is taken now, so that another host makes a new one.
    expect((await ask(b, "POST", "/v1/apps/shop/machines", { config, host: "a" })).status).toBe(201);
    await ask(a, "POST", "/v1/apps/shop/volumes", { name: "data", size_gb: 1, host: "c" });
    expect(await ask(b, "POST", "/v1/apps/shop/machines", { config, host: "a" })).toMatchObject({
      status: 400,
      body: { error: "invalid_argument", message: expect.stringContaining("volume is on host c") },
    });
    await ask(a, "POST", "/v1/apps/shop/volumes", { name: "data", size_gb: 1, host: "a" });
    const there = await ask(b, "POST", "/v1/apps/shop/machines", { config, host: "c" });
    expect([there.status, there.headers.get("hibernaut-host")]).toEqual([201, "c"]);
  });

  test("goes where the newest copy of its volume is, and an outdated one is named and can be destroyed", async () => {
    const made = await ask(a, "POST", "/v1/apps/shop/volumes", { name: "old", size_gb: 1, host: "c" });
    const volume = made.body.id;
    // As after a restore of the directory: host b has the machine that took the volume along.
    await cluster.write({ [`${KEYS.volumes}shop/${volume}`]: { host: "b", epoch: 1 } });
    const path = `/v1/apps/shop/volumes/${volume}`;
    expect((await ask(a, "GET", path)).body).toMatchObject({ id: volume, host: "c", newer_on: "b" });
    const config = (word: string) => ({ image: "app:1", mounts: [{ volume: word, path: "/data" }] });
    const byName = await ask(a, "POST", "/v1/apps/shop/machines", { config: config("old"), host: "c" });
    expect(byName).toMatchObject({ status: 412, body: { message: expect.stringContaining("newer copy") } });
    const byId = await ask(c, "POST", "/v1/apps/shop/machines", { config: config(volume), host: "c" });
    expect(byId).toMatchObject({ status: 412, body: { message: expect.stringContaining("host b has a newer copy") } });
    const files = join("volumes", volume);
    await cp(join(c.world.folder, files), join(b.world.folder, files), { recursive: true });
    b.world.store.volumes.insert({ ...(c.world.store.volumes.get(volume) as VolumeRecord), epoch: 1 });
    expect((await ask(a, "GET", path)).body).toMatchObject({ host: "b" });
    expect(
      (await ask(a, "POST", "/v1/apps/shop/machines", { config: config(volume) })).headers.get("hibernaut-host"),
    ).toBe("b");
    expect((await ask(c, "DELETE", path)).status).toBe(200);
    expect(c.world.store.volumes.get(volume)).toBeUndefined();
    expect(b.world.store.volumes.get(volume)).toBeDefined();
  });

  test("is refused for a region that there is not, and the region has the hosts of the cluster", async () => {
    const body = { config: { image: "app:1" }, region: "mars" };
    expect(await ask(a, "POST", "/v1/apps/shop/machines", body)).toMatchObject({
      status: 400,
      body: { message: "There is no region mars here; the only one is local.", details: { field: "region" } },
    });
    const there = { config: { image: "app:1" }, region: "local" };
    expect((await ask(a, "POST", "/v1/apps/shop/machines", there)).status).toBe(201);
    await cluster.setUp("c", false);
    expect((await ask(b, "GET", "/v1/platform/regions")).body).toEqual({
      regions: [{ code: "local", name: "local", hosts: ["a", "b", "c"] }],
      nearest: "local",
    });
    await cluster.setUp("c", true);
  });

  test("of a file of the host is made there, and elsewhere with its digest if the host takes none", async () => {
    const config = { image: "oci:/srv/shop" };
    const make = (more = {}) => ask(a, "POST", "/v1/apps/shop/machines", { config: { ...config, ...more } });
    const here = await make();
    expect(here).toMatchObject({ status: 201, body: { config: { image: "oci:/srv/shop" } } });
    expect(a.world.store.machines.get(here.body.id)).toBeDefined();
    const withDigest = expect.stringMatching(/^oci:\/srv\/shop@sha256:[0-9a-f]{64}$/);
    await ask(a, "POST", "/v1/apps/shop/volumes", { name: "files", size_gb: 1, host: "c" });
    const byVolume = await make({ mounts: [{ volume: "files", path: "/files" }] });
    expect(byVolume).toMatchObject({ status: 201, body: { config: { image: withDigest } } });
    expect(byVolume.headers.get("hibernaut-host")).toBe("c");
    await cluster.setUp("a", { memoryMb: { total: 8192, free: 4096 }, draining: true });
    const elsewhere = await make();
    expect(elsewhere).toMatchObject({ status: 201, body: { config: { image: withDigest } } });
    expect(elsewhere.headers.get("hibernaut-host")).toMatch(/^[bc]$/);
    config.image = "oci:/srv/missing";
    expect(await make()).toMatchObject({ status: 404, body: { error: "not_found" } });
    await cluster.setUp("a", true);
  });

  test("an update with a file of the host that was asked gives the machine the image of that file", async () => {
    const config = { image: "oci:/srv/own", guest: { memory_mb: 128 } };
    const made = await ask(a, "POST", "/v1/apps/shop/machines", {
      name: "filed",
      host: "b",
      config,
      skip_launch: true,
    });
    await cluster.claim(b, "shop", made.body.id, "filed");
    const update = (image: string) =>
      ask(a, "POST", "/v1/apps/shop/machines/filed", { config: { ...config, image, env: { A: "1" } } });
    const image = async () => (await ask(a, "GET", "/v1/apps/shop/machines/filed")).body.config.image;
    // The one that it has may be a file of its own host only.
    expect((await update("oci:/srv/own")).status).toBe(200);
    await vi.waitFor(async () =>
      expect((await ask(a, "GET", "/v1/apps/shop/machines/filed")).body.config.env).toBeDefined(),
    );
    expect(await image()).toBe("oci:/srv/own");
    expect((await update("oci:/srv/newer")).status).toBe(200);
    await vi.waitFor(async () => expect(await image()).toMatch(/^oci:\/srv\/newer@sha256:[0-9a-f]{64}$/));
    expect(await update("oci:/srv/missing")).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  test("a host that does not exist is refused", async () => {
    const body = { config: { image: "app:1" }, host: "z" };
    expect(await ask(a, "POST", "/v1/apps/shop/machines", body)).toMatchObject({ status: 404 });
  });
});

test("an app's deletion destroys its machines on all hosts, and needs force for that", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "brief" });
  const { body } = await ask(a, "POST", "/v1/apps/brief/machines", { config: { image: "app:1" }, host: "b" });
  expect(await ask(c, "DELETE", "/v1/apps/brief")).toMatchObject({
    status: 412,
    body: { error: "failed_precondition", details: { machines: [body.id] } },
  });
  expect((await ask(c, "DELETE", "/v1/apps/brief?force=true")).status).toBe(200);
  expect(b.world.store.machines.list("brief")).toEqual([]);
  expect((await ask(a, "GET", "/v1/apps/brief")).status).toBe(404);
});
