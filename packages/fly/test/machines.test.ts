/** A machine's life as a program sees it that was written for Fly. */
import { expect, test } from "vitest";
import { startFly } from "./helpers.ts";

const CONFIG = {
  image: "app:1",
  guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 },
  env: { GREETING: "hello" },
  metadata: { user: "7" },
  metrics: { port: 9091, path: "/metrics" },
  dns: { nameservers: ["192.0.2.1"] },
  services: [
    {
      protocol: "tcp",
      internal_port: 8080,
      autostop: "suspend",
      autostart: true,
      force_instance_key: null,
      ports: [
        { port: 80, handlers: ["http"], force_https: true },
        { port: 443, handlers: ["tls", "http"], tls_options: { alpn: ["h2"] } },
      ],
      checks: [{ type: "http", interval: 15_000_000_000, timeout: "1m30s", path: "/health", kind: "readiness" }],
    },
  ],
  something_new: { of: ["Fly's"] },
};

test("what a program keeps in a configuration is still there after it reads, changes and writes it", async () => {
  const { call, platform } = await startFly();
  expect(await call("POST", "/v1/apps", { app_name: "shop", org_slug: "personal" })).toMatchObject({ status: 201 });
  const made = await call("POST", "/v1/apps/shop/machines", { name: "one", region: "iad", config: CONFIG });
  expect(made).toMatchObject({ status: 200, body: { name: "one", host_status: "ok" } });
  const { id } = made.body as { id: string };
  expect(await call("GET", `/v1/apps/shop/machines/${id}/wait?state=started&timeout=60`)).toMatchObject({
    status: 200,
    body: { ok: true, state: "started" },
  });
  const { body: machine } = await call<{ config: typeof CONFIG; instance_id: string }>(
    "GET",
    `/v1/apps/shop/machines/${id}`,
  );
  const { services, ...others } = CONFIG;
  const [service] = services.map(({ force_instance_key: _, ...rest }) => rest);
  expect(machine.config).toMatchObject(others);
  expect(machine.config.services).toEqual([{ ...service, checks: [{ ...service?.checks[0], interval: "15s" }] }]);

  const config = { ...machine.config, env: { GREETING: "hi" } };
  const updated = await call<{ config: typeof CONFIG; instance_id: string }>("POST", `/v1/apps/shop/machines/${id}`, {
    config,
  });
  expect(updated).toMatchObject({ status: 200, body: { config } });
  expect(updated.body.instance_id).not.toBe(machine.instance_id);
  await call("GET", `/v1/apps/shop/machines/${id}/wait?state=started`);
  const { body: again } = await call<typeof updated.body>("GET", `/v1/apps/shop/machines/${id}`);
  expect(again.config).toEqual(config);
  expect(again.instance_id).toBe(updated.body.instance_id);
  // The platform has made the same of it as of its own.
  const own = await platform.api.inject({
    url: `/v1/apps/shop/machines/${id}`,
    headers: { authorization: `Bearer ${platform.token}` },
  });
  expect(own.json()).toMatchObject({
    config: {
      env: { GREETING: "hi" },
      services: [{ protocol: "http", internal_port: 8080, autostop: "suspend", force_https: true }],
      checks: { "servicecheck-00-http-8080": { port: 8080, interval: "15000ms", timeout: "90000ms" } },
    },
  });
});

test("a stop and a restart may say how, in each of the ways that clients write it", async () => {
  const { call, platform } = await startFly();
  await call("POST", "/v1/apps", { app_name: "shop" });
  const { body } = await call<{ id: string }>("POST", "/v1/apps/shop/machines", { config: { image: "app:1" } });
  const machine = `/v1/apps/shop/machines/${body.id}`;
  const running = () => call("GET", `${machine}/wait?state=started`);
  const guest = () => platform.world.host.guest(body.id);
  /** What the app was told by this request. */
  const told = async (path: string, sent?: object) => {
    await running();
    const before = guest();
    expect(await call("POST", `${machine}/${path}`, sent), path).toMatchObject({ status: 200 });
    if (path === "stop") {
      await call("GET", `${machine}/wait?state=stopped`);
      await call("POST", `${machine}/start`);
    }
    await running();
    return before?.asked;
  };
  const own = [{ signal: 15, graceMs: 5000 }];
  for (const sent of [undefined, {}, { id: body.id, signal: "", timeout: "0s" }, { timeout: 0 }, { timeout: null }])
    expect(await told("stop", sent), JSON.stringify(sent)).toEqual(own);
  for (const timeout of ["10s", "9.5s", "10", 10, 10_000_000_000, "10000000000"])
    expect(await told("stop", { signal: "SIGINT", timeout }), String(timeout)).toEqual([
      { signal: 2, graceMs: 10_000 },
    ]);
  for (const timeout of ["10m", 600, "600"])
    expect(await told("stop", { timeout }), String(timeout)).toEqual([{ signal: 15, graceMs: 300_000 }]);
  for (const signal of ["TERM", "15"]) expect(await told("stop", { signal }), signal).toEqual(own);
  expect(await told("stop", { signal: 9 })).toEqual([{ signal: 9, graceMs: 0 }]);

  expect(await told("restart?force_stop=false")).toEqual(own);
  expect(await told("restart?force_stop=true")).toEqual([{ signal: 9, graceMs: 0 }]);
  expect(await told("restart?signal=2&timeout=600")).toEqual([{ signal: 2, graceMs: 300_000 }]);
  for (const timeout of ["10", "10s", "10000000000"])
    expect(await told(`restart?force_stop=false&timeout=${timeout}&signal=SIGINT`), timeout).toEqual([
      { signal: 2, graceMs: 10_000 },
    ]);

  const error = expect.stringContaining("invalid_argument") as string;
  for (const sent of [
    { timeout: "soon" },
    { timeout: -1 },
    { timeout: "-1" },
    { signal: "NOTHING" },
    { signal: 64 },
    { signal: "64" },
  ])
    expect(await call("POST", `${machine}/stop`, sent), JSON.stringify(sent)).toMatchObject({
      status: 400,
      body: { error },
    });
});
