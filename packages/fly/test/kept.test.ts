/** What a machine is shown with, after it was changed in one way or another. */
import { MachineConfig } from "@hibernaut/domain/config";
import { describe, expect, test } from "vitest";
import { carriedOver } from "../src/config/carried.ts";
import { keeping, shown } from "../src/config/kept.ts";
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

  test("leaves no secret behind in what is kept", () => {
    expect(keeping(SENT).fly_config).not.toMatch(/hunter2|c2VjcmV0/);
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
    ...["network", "on_host_loss", "schedule_timezone", "suspend_config"],
  ]);
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
