/** The deletion of an app in a cluster, while others still add something to it on another host. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b] = cluster.hosts;
});
afterAll(() => cluster.close());

const ask: ApiHosts["ask"] = (...args) => cluster.ask(...args);

test("no volume is made while its app is deleted, so that nobody's data reach a later app of the name", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "shop" });
  await a.host.shared.deleteApp("shop", async () => {
    const volume = { name: "data", size_gb: 1, host: "b" };
    expect(await ask(a, "POST", "/v1/apps/shop/volumes", volume)).toMatchObject({
      status: 409,
      body: { error: "aborted" },
    });
  });
  await ask(a, "POST", "/v1/apps", { app_name: "shop" });
  expect(await ask(a, "GET", "/v1/apps/shop/volumes")).toMatchObject({ status: 200, body: [] });
  expect(b.world.store.volumes.list("shop")).toEqual([]);
});

test("a host destroys nothing before it knows of the deletion", async () => {
  await ask(a, "POST", "/v1/apps", { app_name: "kept" });
  expect((await ask(a, "POST", "/v1/apps/kept/volumes", { name: "data", size_gb: 1, host: "b" })).status).toBe(201);
  const { view } = b.host.cluster;
  const value = view.value.bind(view);
  view.value = (key) => (key.endsWith("/apps/kept") ? { name: "kept" } : value(key));
  expect(await ask(a, "DELETE", "/v1/apps/kept?force=true")).toMatchObject({
    status: 503,
    body: { error: "unavailable", details: { host: "b" } },
  });
  expect(b.world.store.volumes.list("kept")).toHaveLength(1);
  view.value = value;
  expect((await ask(a, "DELETE", "/v1/apps/kept?force=true")).status).toBe(200);
  expect(b.world.store.volumes.list("kept")).toEqual([]);
});
