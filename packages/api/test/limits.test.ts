import type { Quota } from "@hibernaut/domain/quota";
import { expect, test } from "vitest";
import type { Rates } from "../src/deps.ts";
import { createToken } from "../src/tokens.ts";
import { as, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

function platform({ quota = {}, rates }: { quota?: Partial<Quota>; rates?: Rates } = {}) {
  return testApi({ ...(rates && { rates }) }, { quota });
}

const MACHINES = "/v1/apps/shop/machines";
const machine = (guest = {}, more = {}) => ({ config: { image: "x", guest }, ...more });
const refusedBy = (quota: string, limit: number, used: number) => ({
  status: 412,
  body: { error: "failed_precondition", details: { quota, limit, used } },
});

test("an app has no more machines, CPUs and memory than its quota, and says what it has", async () => {
  const { call } = await platform({ quota: { machines: 2, cpus: 4, memory_mb: 1024 } });
  expect(await call("POST", MACHINES, machine({ cpus: 2, memory_mb: 512 }))).toMatchObject({ status: 201 });
  expect(await call("POST", MACHINES, machine({ cpus: 3, memory_mb: 128 }))).toMatchObject(refusedBy("cpus", 4, 2));
  expect(await call("POST", MACHINES, machine({ memory_mb: 1024 }))).toMatchObject(refusedBy("memory_mb", 1024, 512));
  const second = await call("POST", MACHINES, machine({ cpus: 1, memory_mb: 256 }));
  expect(second.status).toBe(201);
  expect(await call("POST", MACHINES, machine())).toMatchObject(refusedBy("machines", 2, 2));
  const larger = machine({ cpus: 4, memory_mb: 256 });
  expect(await call("POST", `${MACHINES}/${second.body.id}`, larger)).toMatchObject(refusedBy("cpus", 4, 3));
  expect(await call("GET", "/v1/apps/shop/quota")).toMatchObject({
    body: { limits: { machines: 2, running: 0 }, used: { machines: 2, running: 2, cpus: 3, memory_mb: 768 }, own: [] },
  });
});

test("an app has quotas of its own, which a token of the app cannot change", async () => {
  const { call, server } = await platform({ quota: { machines: 1 } });
  await call("POST", MACHINES, machine());
  const init = as(createToken(server.tokens, "shop", { scopes: ["admin"], apps: ["shop"] }).token);
  expect(await call("PUT", "/v1/apps/shop/quota", { machines: 0 }, init)).toMatchObject({ status: 403 });
  const set = await call("PUT", "/v1/apps/shop/quota", { machines: 2, running: 1 });
  expect(set.body).toMatchObject({ limits: { machines: 2, running: 1 }, own: ["machines", "running"] });
  expect(await call("POST", MACHINES, machine())).toMatchObject(refusedBy("running", 1, 1));
  expect(await call("POST", MACHINES, machine({}, { skip_launch: true }))).toMatchObject({ status: 201 });
  const back = await call("PUT", "/v1/apps/shop/quota", { machines: null });
  expect(back.body).toMatchObject({ limits: { machines: 1, running: 1 }, own: ["running"] });
});

test("volumes of an app take no more than its quota, also when a machine brings them or they grow", async () => {
  const { call } = await platform({ quota: { volume_gb: 3 } });
  const volumes = "/v1/apps/shop/volumes";
  const { body } = await call("POST", volumes, { name: "data", size_gb: 2 });
  expect(await call("POST", volumes, { name: "more", size_gb: 2 })).toMatchObject(refusedBy("volume_gb", 3, 2));
  expect(await call("PUT", `${volumes}/${body.id}/extend`, { size_gb: 4 })).toMatchObject(refusedBy("volume_gb", 3, 2));
  const mounts = [{ volume: "other", path: "/data", size_gb: 2 }];
  expect(await call("POST", MACHINES, { config: { image: "x", mounts } })).toMatchObject({
    status: 412,
    body: { details: { quota: "volume_gb" } },
  });
  expect((await call("GET", volumes)).body).toHaveLength(1);
});

async function created(call: Call, running = true): Promise<string> {
  const { body } = await call("POST", MACHINES, machine({}, { skip_launch: !running }));
  if (running) await call("GET", `${MACHINES}/${body.id}/wait?state=running`);
  return body.id;
}

test("no start makes more machines run at once than the quota: not a start, a restart, nor a prewarm", async () => {
  const { call } = await platform({ quota: { running: 1 } });
  const first = await created(call);
  const second = await created(call, false);
  for (const action of ["start", "restart"])
    expect(await call("POST", `${MACHINES}/${second}/${action}`)).toMatchObject(refusedBy("running", 1, 1));
  const prewarm = { config: { image: "x", env: { A: "1" } }, prewarm: true };
  expect(await call("POST", `${MACHINES}/${second}`, prewarm)).toMatchObject(refusedBy("running", 1, 1));
  // One that runs is restarted within the quota, and one that stops makes room.
  expect(await call("POST", `${MACHINES}/${first}/restart`)).toMatchObject({ status: 200 });
  await call("GET", `${MACHINES}/${first}/wait?state=running`);
  await call("POST", `${MACHINES}/${first}/stop`);
  await call("GET", `${MACHINES}/${first}/wait?state=stopped`);
  expect(await call("POST", `${MACHINES}/${second}/start`)).toMatchObject({ status: 200 });
});

test("a token that goes wild is told to wait; others are not, and neither are other kinds of requests", async () => {
  const { call, server } = await platform({ rates: { reads: 5, changes: 3, execs: 1 } });
  const of = (name: string) => as(createToken(server.tokens, name).token);
  const wild = of("wild");
  for (let count = 0; count < 5; count += 1) expect((await call("GET", "/v1/apps", undefined, wild)).status).toBe(200);
  const refused = await call("GET", "/v1/apps", undefined, wild);
  expect(refused).toMatchObject({
    status: 429,
    body: {
      error: "resource_exhausted",
      message: expect.stringContaining("wild"),
      details: { limit: 5, per: "reads" },
    },
  });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await call("POST", "/v1/apps", { app_name: "more" }, wild)).status).toBe(201);
  expect((await call("GET", "/v1/apps", undefined, of("calm"))).status).toBe(200);
  const exec = `${MACHINES}/none/exec`;
  expect((await call("POST", exec, { command: ["id"] }, wild)).status).toBe(404);
  expect((await call("POST", exec, { command: ["id"] }, wild)).status).toBe(429);
});

test("a token that is limited to apps takes ports of a range, and keeps those that its app has", async () => {
  const closedPorts = (app: string) => (app === "shop" ? [{ port: 25, reason: "listen EADDRINUSE" }] : []);
  const { server, call } = await testApi({ tcpPorts: "1024-65535", closedPorts }, { apps: ["shop", "bank"] });
  const limited = as(createToken(server.tokens, "ci", { scopes: ["deploy"], apps: ["shop"] }).token);
  const config = (...ports: number[]) => ({
    config: { image: "x", services: [{ internal_port: 80, protocol: "tcp", ports: ports.map((port) => ({ port })) }] },
    skip_launch: true,
  });
  const create = (body: object, init?: object) => call("POST", "/v1/apps/shop/machines", body, init);
  expect(await create(config(5432, 22), limited)).toMatchObject({
    status: 403,
    body: { error: "permission_denied", details: { port: 22, ports: "1024-65535" } },
  });
  const { config: from } = config(22);
  expect((await call("POST", "/v1/apps/shop/templates", { from }, limited)).status).toBe(403);
  // Someone with a token for all apps gives it to the app, which keeps it from then on.
  const { body: made } = await create(config(25));
  expect((await create(config(25, 5432), limited)).status).toBe(201);
  const path = `/v1/apps/shop/machines/${made.id}`;
  const update = (...ports: number[]) => call("POST", path, { config: config(...ports).config }, limited);
  expect((await update(25)).status).toBe(200);
  expect((await update(25, 587)).status).toBe(403);
  expect((await call("GET", "/v1/apps/shop")).body.closed_ports).toEqual([{ port: 25, reason: "listen EADDRINUSE" }]);
  expect((await call("GET", "/v1/apps/bank")).body).not.toHaveProperty("closed_ports");
});

test("an app has up to a number of hostnames and certificates, also when an admin adds them", async () => {
  const { call, server } = await platform({ quota: { hostnames: 2, certificates: 1 } });
  const add = (what: "hostnames" | "certificates", hostname: string) =>
    call("POST", `/v1/apps/shop/${what}`, { hostname });
  for (const name of ["a.example.com", "b.example.com"]) expect((await add("hostnames", name)).status).toBe(201);
  expect(await add("hostnames", "c.example.com")).toMatchObject(refusedBy("hostnames", 2, 2));
  // What it has already does not count again.
  expect((await add("hostnames", "a.example.com")).status).toBe(201);
  expect((await add("certificates", "a.example.com")).status).toBe(201);
  expect(await add("certificates", "b.example.com")).toMatchObject(refusedBy("certificates", 1, 1));
  expect((await add("certificates", "a.example.com")).status).toBe(201);
  const { body } = await call("PUT", "/v1/apps/shop/quota", { hostnames: 3 });
  expect(body).toMatchObject({ limits: { hostnames: 3, certificates: 1 }, used: { hostnames: 2, certificates: 1 } });
  expect((await add("hostnames", "c.example.com")).status).toBe(201);
  expect(server.platform.hostnames.list("shop")).toHaveLength(3);
});

test("tokens of one app do not take the places of all for uploads", async () => {
  const { server, call } = await testApi({ uploadsPerApp: 2 }, { apps: ["shop", "bank"] });
  const of = (...apps: string[]) => as(createToken(server.tokens, "ci", { scopes: ["deploy"], apps }).token);
  const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
  const begin = (letter: string, init?: object) => {
    const blob = (mediaType: string, size: number) => ({ mediaType, digest: digest(letter), size });
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: { ...blob("application/vnd.oci.image.config.v1+json", 10), digest: digest("0") },
      layers: [blob("application/vnd.oci.image.layer.v1.tar+gzip", 100)],
    });
    return call("POST", "/v1/images/uploads", { name: `${letter}:1`, manifest }, init);
  };
  const shop = of("shop");
  const { body: first } = await begin("a", shop);
  expect((await begin("b", shop)).status).toBe(200);
  // Another token of the app, and one of two apps.
  for (const init of [of("shop"), of("bank", "shop")])
    expect(await begin("c", init)).toMatchObject({
      status: 429,
      body: { error: "resource_exhausted", details: { app_name: "shop", quota: "uploads", limit: 2 } },
    });
  expect((await begin("a", shop)).status).toBe(200);
  // Those for its previews have a share of their own, also while there are no previews.
  const rights = { scopes: ["deploy"] as const, apps: [], previewsOf: ["shop"] };
  const previews = as(createToken(server.tokens, "previews", rights).token);
  for (const letter of ["f", "9"]) expect((await begin(letter, previews)).status).toBe(200);
  expect(await begin("8", previews)).toMatchObject({ status: 429, body: { details: { quota: "uploads" } } });
  expect((await begin("c", of("bank"))).status).toBe(200);
  expect((await begin("d")).status).toBe(200);
  expect((await call("DELETE", `/v1/images/uploads/${first.digest}`)).status).toBe(200);
  expect((await begin("e", shop)).status).toBe(200);
});
