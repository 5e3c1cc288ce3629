import { beforeEach, describe, expect, test } from "vitest";
import { testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let call: Call;
beforeEach(async () => {
  ({ call } = await testApi());
});

const VOLUMES = "/v1/apps/shop/volumes";

test("are created, listed, shown, extended and destroyed, with Fly's field names", async () => {
  expect(await call("GET", VOLUMES)).toMatchObject({ status: 200, body: [] });
  const { status, body } = await call("POST", VOLUMES, {
    name: "data",
    size_gb: 2,
    region: "local",
    snapshot_retention: 7,
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^vol_[0-9a-f]{16}$/),
    name: "data",
    state: "created",
    size_gb: 2,
    region: "local",
    encrypted: false,
    used_bytes: expect.any(Number),
    attached_machine_id: null,
    snapshot_retention: 7,
    auto_backup_enabled: false,
    last_scheduled_snapshot_at: null,
    scheduled_snapshot_error: null,
    created_at: expect.any(String),
  });
  const one = `${VOLUMES}/${body.id}`;
  expect((await call("GET", VOLUMES)).body).toEqual([body]);
  expect((await call("GET", one)).body).toEqual(body);
  const scheduled = { auto_backup_enabled: true, snapshot_retention: 9 };
  expect(await call("PUT", one, scheduled)).toMatchObject({ status: 200, body: { ...body, ...scheduled } });
  expect(await call("PUT", one, { snapshot_retention: 61 })).toMatchObject({ status: 400 });
  const { auto_backup_enabled: off, snapshot_retention: days } = body;
  expect(await call("PUT", one, { auto_backup_enabled: off, snapshot_retention: days })).toMatchObject({ body });
  expect(await call("PUT", `${one}/extend`, { size_gb: 3 })).toMatchObject({
    status: 200,
    body: { volume: { ...body, size_gb: 3 }, needs_restart: false },
  });
  expect(await call("PUT", `${one}/extend`, { size_gb: 1 })).toMatchObject({ status: 400 });
  expect(await call("DELETE", one)).toMatchObject({ status: 200, body: { ok: true } });
  expect(await call("GET", one)).toMatchObject({ status: 404, body: { error: "not_found" } });
});

test("destroying a volume that belongs to a machine is 412", async () => {
  const { body: volume } = await call("POST", VOLUMES, { name: "data" });
  const config = { image: "x", mounts: [{ volume: volume.id, path: "/data" }] };
  const { body: machine } = await call("POST", "/v1/apps/shop/machines", { config });
  expect((await call("GET", `${VOLUMES}/${volume.id}`)).body.attached_machine_id).toBe(machine.id);
  expect(await call("DELETE", `${VOLUMES}/${volume.id}`)).toMatchObject({
    status: 412,
    body: { error: "failed_precondition", details: { machine_id: machine.id } },
  });
});

test("snapshots are created, listed, restored and deleted", async () => {
  const { body: volume } = await call("POST", VOLUMES, { name: "data" });
  const snapshots = `${VOLUMES}/${volume.id}/snapshots`;
  const { status, body } = await call("POST", snapshots);
  expect(status).toBe(201);
  expect(body).toMatchObject({ status: "created", volume_size: 1, retention_days: 5 });
  expect((await call("GET", snapshots)).body).toEqual([body]);
  const restored = await call("POST", VOLUMES, { name: "copy", snapshot_id: body.id });
  expect(restored).toMatchObject({ status: 201, body: { name: "copy", size_gb: 1 } });
  expect(await call("DELETE", `${snapshots}/${body.id}`)).toMatchObject({ status: 200 });
  expect(await call("DELETE", `${snapshots}/${body.id}`)).toMatchObject({ status: 404 });
  expect((await call("GET", snapshots)).body).toEqual([]);
});

describe("a bad request", () => {
  test.each([
    ["no name", {}, 400],
    ["an invalid name", { name: "No Name" }, 400],
    ["a name that looks like an id", { name: "vol_0123456789abcdef" }, 400],
    ["a size of 0", { name: "data", size_gb: 0 }, 400],
    ["a huge size", { name: "data", size_gb: 1e9 }, 400],
    ["another region", { name: "data", region: "ams" }, 400],
    ["a retention of 0 days", { name: "data", snapshot_retention: 0 }, 400],
    ["a snapshot that does not exist", { name: "data", snapshot_id: "vs_0123456789abcdef" }, 404],
    ["an unknown key", { name: "data", encrypted: true }, 400],
  ])("with %s creates nothing", async (_what, body, status) => {
    expect(await call("POST", VOLUMES, body)).toMatchObject({ status });
    expect((await call("GET", VOLUMES)).body).toEqual([]);
  });

  test.each(["..%2f..%2fetc", "vol_0", "%00", "vol_0123456789abcdef"])("for the id %s is 404", async (id) => {
    for (const [method, path, body] of [
      ["GET", ""],
      ["DELETE", ""],
      ["PUT", "/extend", { size_gb: 2 }],
      ["POST", "/snapshots"],
      ["DELETE", "/snapshots/vs_0123456789abcdef"],
    ] as const)
      expect(await call(method, `${VOLUMES}/${id}${path}`, body), `${method} ${path}`).toMatchObject({ status: 404 });
  });

  test.each(["apps/none/volumes", "apps/none/volumes/vol_0123456789abcdef"])(
    "for an app that does not exist: /v1/%s",
    async (path) => {
      expect(await call("GET", `/v1/${path}`)).toMatchObject({ status: 404 });
    },
  );
});
