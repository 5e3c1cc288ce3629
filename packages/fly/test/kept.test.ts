/** What a machine is shown with, after it was changed in one way or another. */
import { MachineConfig } from "@hibernaut/domain/config";
import type { CheckConfig } from "@hibernaut/domain/service-config";
import { describe, expect, test } from "vitest";
import { carriedOver } from "../src/config/carried.ts";
import { keeping, shown } from "../src/config/kept.ts";
import { normalised } from "../src/config/normalised.ts";
import { startFly } from "./helpers.ts";

const SENT = {
  image: "x",
  env: { PASSWORD: "hunter2" },
  files: [{ guest_path: "/key", raw_value: "c2VjcmV0", owner: "root" }],
  mounts: [{ volume: "vol_1", path: "/data", encrypted: true }],
  services: [{ internal_port: 80, ports: [{ port: 443, handlers: ["http"] }], force_instance_key: "x" }],
  dns: { searches: ["internal"] },
};

describe("a change that is made otherwise", () => {
  test("is what a client sees, and nothing else changes for it", () => {
    const made = keeping(SENT);
    expect(shown(made)).toMatchObject(SENT);
    const changed = { ...made, env: { PASSWORD: "other" }, guest: { cpus: 2 }, mounts: [] };
    expect(shown(changed)).toMatchObject({
      ...{ dns: SENT.dns, services: SENT.services, files: SENT.files },
      ...{ env: { PASSWORD: "other" }, guest: { cpus: 2, memory_mb: 256 }, mounts: [] },
    });
    const { services: _, env: _env, files: _files, mounts: _mounts, ...bare } = made;
    for (const gone of ["services", "env", "files", "mounts"]) expect(shown(bare)).not.toHaveProperty(gone);
  });

  const check = { type: "http", path: "/", headers: [{ name: "authorization", values: ["Basic hunter2"] }] };
  const OLD = {
    image: "x",
    processes: [{ cmd: ["a"], env: { PASSWORD: "hunter2" } }],
    files: [{ guest_path: "/key", raw_value: "c2VjcmV0" }],
    disable_machine_autostart: true,
    guest: { cpus: 1, persist_rootfs: "always" },
    services: [{ internal_port: 80, ports: [{ port: 443, handlers: ["http"] }], checks: [check], idle_timeout: 9 }],
    checks: { alive: check },
  };
  const made = keeping(normalised(OLD));

  test("leaves no secret behind in what is kept", () => {
    expect(made.fly_config).not.toMatch(/hunter2|c2VjcmV0/);
    expect(shown(made)).toMatchObject({
      services: [{ checks: [check] }],
      checks: { alive: check },
      env: { PASSWORD: "hunter2" },
    });
  });

  test.each<[string, MachineConfig]>([
    ["a variable that is gone", { ...made, env: {} }],
    ["another command", { ...made, init: { cmd: ["b"] } }],
    ["a check that is gone", { ...made, checks: {} }],
    ["a check of a service that is gone", { ...made, checks: { alive: made.checks?.["alive"] as CheckConfig } }],
    ["a header of a check", { ...made, checks: { ...made.checks, alive: { type: "http", path: "/", headers: [] } } }],
    ["requests that start it", { ...made, services: [{ ...made.services?.[0], internal_port: 80, autostart: true }] }],
    ["another idle time", { ...made, services: [{ ...made.services?.[0], internal_port: 80, idle_timeout: 60 }] }],
    ["a layer that is not kept", { ...made, keep_layer: false }],
    ["another size", { ...made, guest: { cpus: 2, memory_mb: 512 } }],
    ["no files", { ...made, files: [] }],
  ])("is not undone by a client that reads and writes: %s", (_what, changed) => {
    const { fly_config: _text, ...after } = carriedOver(changed, keeping(normalised(shown(changed))));
    const { fly_config: _other, ...before } = changed;
    const bare = ({ keep_layer: keeps = false, env = {}, files = [], checks = {}, ...rest }: MachineConfig) => ({
      ...{ keeps, env, files, ...rest },
      checks: Object.fromEntries(
        Object.entries(checks).map(([name, { headers = [], ...one }]) => [name, { ...one, headers }]),
      ),
    });
    expect(bare(after)).toMatchObject(bare(before));
    expect(Object.keys(after.checks ?? {})).toEqual(Object.keys(before.checks ?? {}));
    expect(after.env ?? {}).toEqual(before.env ?? {});
  });

  test.each(["not json", "null", "[]", '{"services":7}', `{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`])(
    "of what is kept to something else (%.20s) harms nobody",
    (text) => {
      expect(shown({ image: "x", env: { A: "b" }, fly_config: text })).toMatchObject({ image: "x", env: { A: "b" } });
    },
  );
});

test("what Fly's configuration has no word for stays when a client writes all of it", () => {
  const now: MachineConfig = {
    image: "x",
    network: { egress: { default: "deny", allow: ["192.0.2.1"] } },
    suspend_config: { timeout: 5 },
    services: [
      { internal_port: 80, machine_hostnames: false, replay_from: ["gate"], autostop: "suspend", idle_timeout: 9 },
    ],
  };
  const next = carriedOver(now, keeping({ ...SENT, services: [...SENT.services, { internal_port: 81 }] }));
  expect(next).toMatchObject({ network: now.network, suspend_config: now.suspend_config, env: SENT.env });
  expect(next.services).toEqual([
    { protocol: "http", internal_port: 80, machine_hostnames: false, replay_from: ["gate"], idle_timeout: 9 },
    { protocol: "tcp", internal_port: 81 },
  ]);
  // A key that the platform learns is carried over as well.
  const all = Object.keys(MachineConfig.properties);
  const full = Object.fromEntries(all.map((key) => [key, "kept"])) as unknown as MachineConfig;
  const kept = Object.entries(carriedOver(full, { image: "y" })).filter(([, value]) => value === "kept");
  expect(kept.map(([key]) => key).toSorted()).toEqual([
    ...["backup", "network", "on_host_loss", "suspend_config", "worker_idle_timeout"],
  ]);
  // A time zone means nothing without the schedule that a client has taken out.
  const zone = { image: "x", schedule: "daily", schedule_timezone: "Europe/Berlin" };
  expect(carriedOver(zone, { image: "x" })).toEqual({ image: "x" });
  expect(carriedOver(zone, { image: "x", schedule: "hourly" })).toEqual({ ...zone, schedule: "hourly" });
});

test("a tenant's text breaks no list of others", async () => {
  const { call, platform } = await startFly();
  platform.platform.apps.create("shop");
  await platform.platform.machines.create("shop", { config: { image: "x", fly_config: "not json" } });
  expect(await call("GET", "/v1/orgs/personal/machines")).toMatchObject({
    status: 200,
    body: { machines: [{ config: { image: "x" } }] },
  });
});
