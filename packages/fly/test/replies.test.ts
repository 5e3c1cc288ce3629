/** Replies are as Fly's public document says: a client that is generated from it reads them, and checks each. */
import { expect, test } from "vitest";
import { caller } from "./document.ts";
import { startFly } from "./helpers.ts";

const CONFIG = {
  image: "app:1",
  services: [
    {
      internal_port: 8080,
      protocol: "tcp",
      autostop: "stop",
      ports: [{ port: 443, handlers: ["tls", "http"], http_options: { h2_backend: false } }],
      checks: [{ type: "tcp", interval: "15s" }],
    },
  ],
  checks: { alive: { type: "http", port: 8080, path: "/", interval: "1m0s", headers: [{ name: "A", values: ["b"] }] } },
  files: [{ guest_path: "/etc/note", raw_value: "aGk=" }],
  restart: { policy: "on-failure", max_retries: 2 },
  stop_config: { signal: "SIGINT", timeout: "10s" },
  env: { A: "b" },
};

test("of what is done with apps, machines, volumes and secrets", async () => {
  const { url, platform } = await startFly();
  const call = caller(`${url}/v1`, platform.token);
  const app_name = "shop";
  await call("AppsCreate", { name: app_name, org_slug: "personal" });
  const volume = (await call("VolumesCreate", { app_name, name: "data", region: "iad", size_gb: 1 })) as { id: string };
  const mounts = [{ volume: volume.id, path: "/data" }];
  const made = (await call("MachinesCreate", { app_name, config: { ...CONFIG, mounts } })) as { id: string };
  const at = { app_name, machine_id: made.id };
  const of = { app_name, volume_id: volume.id };
  await call("MachinesWait", { ...at, state: "started" });
  for (const name of ["MachinesShow", "MachinesListEvents", "MachinesListVersions", "MachinesShowMetadata"])
    await call(name, at);
  await call("MachinesUpdateMetadata", { ...at, metadata: { plan: "free" } });
  await call("MachinesUpsertMetadata", { ...at, key: "plan", value: "pro" });
  expect(await call("MachinesGetMetadataKey", { ...at, key: "plan" })).toEqual({ value: "pro" });
  await call("MachinesDeleteMetadata", { ...at, key: "plan" });
  await expect(call("MachinesGetMetadataKey", { ...at, key: "plan" })).rejects.toThrow("metadata key not found");
  for (const name of ["MachinesCordon", "MachinesUncordon", "MachinesRestart"]) await call(name, at);
  await call("MachinesWait", { ...at, state: "started" });
  await call("MachinesUpdate", { ...at, config: { ...CONFIG, env: { A: "c" }, mounts } });
  await call("MachinesWait", { ...at, state: "started" });
  await call("MachinesCreateLease", { ...at, ttl: 60, description: "a deploy" });
  expect(await call("MachinesShowLease", at)).toMatchObject({ description: "a deploy" });
  await platform.api.inject({
    ...{ method: "DELETE", url: `/v1/apps/shop/machines/${made.id}/lease?force=true` },
    headers: { authorization: `Bearer ${platform.token}` },
  });
  await call("MachinesStop", { ...at, signal: "SIGTERM", timeout: "5s" });
  await call("MachinesWait", { ...at, state: "stopped" });
  expect(await call("MachinesList", { app_name })).toMatchObject([
    { id: made.id, config: { env: { A: "c" }, mounts } },
  ]);
  expect(await call("MachinesOrgList", { org_slug: "personal" })).toMatchObject({
    machines: [{ app_name, id: made.id }],
  });

  for (const name of ["VolumesGetById", "createVolumeSnapshot", "VolumesListSnapshots"]) await call(name, of);
  await call("VolumesUpdate", { ...of, snapshot_retention: 7 });
  await call("VolumesExtend", { ...of, size_gb: 2 });
  expect(await call("VolumesList", { app_name })).toMatchObject([{ size_gb: 2, attached_machine_id: made.id }]);
  await call("VolumesOrgList", { org_slug: "personal" });

  await call("SecretCreate", { app_name, secret_name: "PIN", value: "1234" });
  await call("SecretsUpdate", { app_name, values: { TOKEN: "x" } });
  expect(await call("SecretsList", { app_name })).toMatchObject({ secrets: [{ name: "PIN" }, { name: "TOKEN" }] });
  await call("SecretGet", { app_name, secret_name: "PIN" });
  await call("SecretDelete", { app_name, secret_name: "PIN" });
  for (const name of ["AppsShow", "AppCertificatesList", "AppIPAssignmentsList"]) await call(name, { app_name });
  expect(await call("AppsList", { org_slug: "personal" })).toMatchObject({ total_apps: 1 });
  expect(await call("PlatformRegionsGet", {})).toMatchObject({ regions: [{ code: "local" }] });

  await call("MachinesStart", at);
  await call("MachinesWait", { ...at, state: "started" });
  await call("MachinesDelete", { ...at, force: true });
  await call("MachinesWait", { ...at, state: "destroyed" });
  await call("VolumeDelete", of);
  await call("AppsDelete", { app_name });
  await expect(call("MachinesShow", at)).rejects.toThrow(/not found/);
});
