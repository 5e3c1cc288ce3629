/** Programs that were written for Fly Machines, with clients that Fly's users have, on real machines. */
import { createClient } from "fly-admin";
import { beforeAll, expect, test } from "vitest";
import { caller } from "../../../fly/test/document.ts";
import { ask } from "../helpers/proxied.ts";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const shell = await sandboxImage();
const place = Place.forTests({ HIBERNAUT_FLY_LISTEN: "127.0.0.1:0" });

let call: ReturnType<typeof caller>;
let admin: ReturnType<typeof createClient>;
beforeAll(async () => {
  const token = await place.served.token();
  call = caller(`${place.served.flyUrl}/v1`, token);
  admin = createClient(token);
  // Its constructor takes addresses, but no other module may call it.
  Object.assign(admin, { apiUrl: place.served.flyUrl, graphqlUrl: place.served.flyUrl });
});

interface Machine {
  id: string;
  instance_id: string;
  state: string;
  config: Record<string, unknown>;
}

test("a control plane keeps a machine for a user: it sleeps, a request wakes it, and nothing of it is lost", async () => {
  await call("AppsCreate", { name: "users", org_slug: "personal" });
  const config = {
    image: SMALL_APP,
    guest: { cpu_kind: "shared", cpus: 1, memory_mb: 128 },
    metadata: { user: "7" },
    metrics: { port: 9091, path: "/metrics" },
    services: [
      {
        protocol: "tcp",
        internal_port: 8080,
        autostop: "suspend",
        autostart: true,
        ports: [{ port: 443, handlers: ["tls", "http"] }],
      },
    ],
  };
  const made = (await call("MachinesCreate", { app_name: "users", name: "user-7", region: "iad", config })) as Machine;
  const at = { app_name: "users", machine_id: made.id };
  await call("MachinesWait", { ...at, state: "started", timeout: 60 });
  const visit = () => ask({ proxyUrl: place.served.proxyUrl, app: "users" });
  expect((await visit()).status).toBe(200);

  await call("MachinesSuspend", at);
  await call("MachinesWait", { ...at, state: "suspended", timeout: 60 });
  expect(await call("MachinesShow", at)).toMatchObject({ state: "suspended", config });
  expect((await visit()).status).toBe(200);
  expect(await call("MachinesShow", at)).toMatchObject({
    id: made.id,
    instance_id: made.instance_id,
    state: "started",
  });

  const lease = (await call("MachinesCreateLease", { ...at, ttl: 60 })) as { nonce: string };
  await expect(call("MachinesStop", at)).rejects.toThrow(/lease currently held by/);
  await expect(call("MachinesCreateLease", { ...at, ttl: 60 })).rejects.toThrow(/lease currently held by/);
  const held = {
    method: "DELETE",
    headers: { authorization: `Bearer ${await place.served.token()}`, "fly-machine-lease-nonce": lease.nonce },
  };
  expect((await fetch(`${place.served.flyUrl}/v1/apps/users/machines/${made.id}/lease`, held)).status).toBe(200);
  await expect(call("MachinesShowLease", at)).rejects.toThrow(/ lease not found/);

  await call("MachinesUpsertMetadata", { ...at, key: "plan", value: "pro" });
  expect(await call("MachinesList", { app_name: "users" })).toMatchObject([
    { config: { metadata: { user: "7", plan: "pro" } } },
  ]);
  await call("MachinesDelete", { ...at, force: true });
  await call("MachinesWait", { ...at, state: "destroyed", timeout: 60 });
});

test("fly-admin changes a machine with a volume and runs a program in it", { tags: "again" }, async () => {
  await call("AppsCreate", { name: "tools", org_slug: "personal" });
  const app_name = "tools";
  const volume = (await admin.Volume.createVolume({ app_name, name: "data", region: "iad", size_gb: 1 })) as {
    id: string;
  };
  const config = {
    image: shell,
    init: { exec: ["sleep", "infinity"] },
    guest: { cpu_kind: "shared" as const, cpus: 1, memory_mb: 256 },
    mounts: [{ volume: volume.id, path: "/data" }],
    env: { COLOUR: "blue" },
    auto_destroy: false,
  };
  const made = await admin.Machine.createMachine({ app_name, config });
  const at = { app_name, machine_id: made.id };
  await admin.Machine.waitMachine({ ...at, state: "started" as never });
  const run = async (cmd: string) => ((await call("MachinesExec", { ...at, cmd })) as { stdout: string }).stdout;
  expect(await run("sh -c 'echo kept > /data/note; echo $COLOUR'")).toBe("blue\n");
  expect(await admin.Machine.listProcesses(at)).toEqual(
    expect.arrayContaining([expect.objectContaining({ command: expect.stringContaining("sleep") as string })]),
  );

  const { config: read } = await admin.Machine.getMachine(at);
  const updated = await admin.Machine.updateMachine({ ...at, config: { ...read, env: { COLOUR: "green" } } });
  expect(updated.instance_id).not.toBe(made.instance_id);
  await admin.Machine.waitMachine({ ...at, instance_id: updated.instance_id, state: "started" as never });
  expect(await run("sh -c 'cat /data/note; echo $COLOUR'")).toBe("kept\ngreen\n");
  expect(await admin.Machine.listVersions(at)).toMatchObject([{ version: updated.instance_id }]);

  await admin.Machine.stopMachine(at);
  await admin.Machine.waitMachine({ ...at, instance_id: updated.instance_id, state: "stopped" as never });
  const events = await admin.Machine.listEvents(at);
  expect(events[0]).toMatchObject({ type: "exit", request: { exit_event: { requested_stop: true } } });
  await admin.Machine.cordonMachine(at);
  expect(await admin.Machine.getMachine(at)).toMatchObject({ state: "stopped", cordoned: true });
  await admin.Machine.deleteMachine({ ...at, force: true });
  await call("MachinesWait", { ...at, state: "destroyed", timeout: 60 });
  await admin.Volume.deleteVolume({ app_name, volume_id: volume.id });
  expect(await admin.Volume.listVolumes(app_name)).toEqual([]);
  await call("AppsDelete", { app_name });
  await expect(call("AppsShow", { app_name })).rejects.toThrow("app not found");
});
