import { beforeEach, describe, expect, test } from "vitest";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi({}, { apps: [] }));
});

const MACHINES = "/v1/apps/shop/machines";

async function createMachine(body: Record<string, unknown> = {}): Promise<string> {
  await call("POST", "/v1/apps", { app_name: "shop" });
  const { body: machine } = await call("POST", MACHINES, { config: { image: "oci:/srv/app" }, ...body });
  return machine.machine_id as string;
}

describe("apps", () => {
  test("are created, shown, listed and deleted", async () => {
    expect(await call("POST", "/v1/apps", { app_name: "shop" })).toMatchObject({
      status: 201,
      body: { name: "shop", machine_count: 0 },
    });
    expect(await call("POST", "/v1/apps", { name: "blog" })).toMatchObject({ status: 201 });
    expect(await call("GET", "/v1/apps")).toMatchObject({
      status: 200,
      body: { total_apps: 2, apps: [{ name: "blog" }, { name: "shop" }] },
    });
    expect(await call("GET", "/v1/apps/shop")).toMatchObject({ status: 200, body: { name: "shop" } });
    expect(await call("DELETE", "/v1/apps/shop")).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call("GET", "/v1/apps/shop")).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  test("a name that is taken is 409; a missing or contradictory one is 400", async () => {
    await call("POST", "/v1/apps", { app_name: "shop" });
    expect(await call("POST", "/v1/apps", { app_name: "shop" })).toMatchObject({
      status: 409,
      body: { error: "already_exists" },
    });
    expect(await call("POST", "/v1/apps", {})).toMatchObject({ status: 400 });
    expect(await call("POST", "/v1/apps", { app_name: "a", name: "b" })).toMatchObject({ status: 400 });
  });

  test("deleting an app with machines needs force", async () => {
    await createMachine();
    expect(await call("DELETE", "/v1/apps/shop")).toMatchObject({
      status: 412,
      body: { error: "failed_precondition" },
    });
    expect(await call("DELETE", "/v1/apps/shop?force=true")).toMatchObject({ status: 200 });
  });
});

describe("machines", () => {
  test("go through their life", async () => {
    const id = await createMachine({ name: "web-1" });
    const at = `${MACHINES}/${id}`;
    expect(await call("GET", `${at}/wait`)).toMatchObject({ status: 200, body: { ok: true, state: "running" } });
    expect(await call("GET", at)).toMatchObject({
      body: { id, machine_id: id, name: "web-1", state: "running", snapshot: null },
    });
    expect(await call("POST", `${at}/suspend`)).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call("GET", `${at}/wait?state=suspended&timeout=5`)).toMatchObject({ body: { state: "suspended" } });
    expect(await call("GET", at)).toMatchObject({
      body: { state: "suspended", snapshot: { size_bytes: expect.any(Number), created_at: expect.any(String) } },
    });
    expect(await call("POST", `${at}/start`, {})).toMatchObject({
      status: 200,
      body: { ok: true, previous_state: "suspended" },
    });
    expect(await call("GET", `${at}/wait?state=started`)).toMatchObject({ body: { state: "running" } });
    expect(await call("GET", at)).toMatchObject({ body: { last_boot: { kind: "resume" } } });
    expect(await call("POST", `${at}/restart`)).toMatchObject({ status: 200 });
    expect(await call("GET", `${at}/wait?state=settled`)).toMatchObject({ status: 200 });
    expect(await call("POST", `${at}/stop`)).toMatchObject({ status: 200 });
    expect(await call("GET", `${at}/wait?state=stopped,failed`)).toMatchObject({ body: { state: "stopped" } });
    expect(await call("DELETE", at)).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call("GET", `${at}/wait?state=destroyed`)).toMatchObject({ body: { state: "destroyed" } });
    const { body: events } = await call("GET", `${at}/events`);
    expect(events[0]).toMatchObject({ type: "removed", from: "destroying", to: "destroyed" });
    expect(events.at(-1)).toMatchObject({ type: "create", from: null, to: "created" });
    expect((await call("GET", `${at}/events?limit=2`)).body).toHaveLength(2);
  });

  test("stay in `created` with skip_launch", async () => {
    const id = await createMachine({ skip_launch: true, region: "local" });
    expect(await call("GET", `${MACHINES}/${id}`)).toMatchObject({ body: { state: "created", last_boot: null } });
    expect((await call("GET", MACHINES)).body).toMatchObject([{ id }]);
  });

  test("an update replaces the configuration; without one, a machine that is current stays as it is", async () => {
    const id = await createMachine({ skip_launch: true });
    const before = (await call("GET", `${MACHINES}/${id}`)).body;
    const config = { image: "oci:/srv/app", env: { A: "1" } };
    const updated = async (body: object) => {
      expect(await call("POST", `${MACHINES}/${id}`, body)).toMatchObject({ status: 200, body: { state: "updating" } });
      await call("GET", `${MACHINES}/${id}/wait?state=settled`);
      return (await call("GET", `${MACHINES}/${id}`)).body;
    };
    const changed = await updated({ config });
    expect(changed).toMatchObject({ state: "created", config });
    expect(changed.version).not.toBe(before.version);
    expect(changed.guest_bundle).toEqual({ version: "bundle-1", current: true, update_pending: false });
    expect(await call("POST", `${MACHINES}/${id}`, {})).toMatchObject({ status: 200, body: changed });
    expect(await call("POST", `${MACHINES}/${id}`)).toMatchObject({ status: 400 });
  });

  test("destroying a running machine needs force", async () => {
    const id = await createMachine();
    await call("GET", `${MACHINES}/${id}/wait`);
    expect(await call("DELETE", `${MACHINES}/${id}`)).toMatchObject({ status: 412 });
    expect(await call("DELETE", `${MACHINES}/${id}?force=true`)).toMatchObject({ status: 200 });
  });

  test("a machine that cannot be suspended shows why, and the suspend is refused", async () => {
    const id = await createMachine({ config: { image: "x", guest: { memory_mb: 4096 } } });
    await call("GET", `${MACHINES}/${id}/wait`);
    expect(await call("GET", `${MACHINES}/${id}`)).toMatchObject({
      body: { suspend: { eligible: false, reasons: [expect.stringContaining("4096")] } },
    });
    expect(await call("POST", `${MACHINES}/${id}/suspend`)).toMatchObject({ status: 412 });
  });

  test("a machine that fails to start shows the reason", async () => {
    server.world.host.faults.boot = new Error("out of memory");
    const id = await createMachine();
    expect(await call("GET", `${MACHINES}/${id}/wait?state=running&state=failed`)).toMatchObject({
      body: { state: "failed" },
    });
    expect(await call("GET", `${MACHINES}/${id}`)).toMatchObject({ body: { state_reason: "out of memory" } });
  });
});

describe("waiting", () => {
  test("for an unknown state is refused with a suggestion", async () => {
    const id = await createMachine();
    expect(await call("GET", `${MACHINES}/${id}/wait?state=suspendd`)).toMatchObject({
      status: 400,
      body: { message: "`suspendd` is not a valid `state`. Did you mean `suspended`?" },
    });
    for (const query of [
      "timeout=0",
      "timeout=301",
      "timeout=1.5",
      "timeout=x",
      "timeout=",
      "timeout=1&timeout=2",
      "time=1",
    ]) {
      expect(await call("GET", `${MACHINES}/${id}/wait?${query}`)).toMatchObject({ status: 400 });
    }
  });

  test("says which of the states it was, where the machine's state does not", async () => {
    const id = await createMachine();
    expect(await call("GET", `${MACHINES}/${id}/wait?state=unhealthy,healthy`)).toMatchObject({
      body: { state: "running", reached: "healthy" },
    });
    expect(await call("GET", `${MACHINES}/${id}/wait?state=started`)).toMatchObject({ body: { reached: "running" } });
  });

  test("ends at its deadline with 408", async () => {
    const id = await createMachine();
    await call("GET", `${MACHINES}/${id}/wait`);
    expect(await call("GET", `${MACHINES}/${id}/wait?state=suspended&timeout=1`)).toMatchObject({
      status: 408,
      body: {
        error: "deadline_exceeded",
        message: "machine failed to reach desired state, suspended, currently running",
      },
    });
  });

  test("ends when the client disconnects", async () => {
    server.world.holdBoots();
    const id = await createMachine();
    const gone = new AbortController();
    const waiting = call("GET", `${MACHINES}/${id}/wait?timeout=300`, undefined, { signal: gone.signal });
    await expect.poll(() => server.open.waits).toBe(1);
    gone.abort();
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => server.open.waits).toBe(0);
    expect(server.logged).toEqual([]);
  });

  test("is answered when the platform shuts down", async () => {
    server.world.holdBoots();
    const id = await createMachine();
    const waiting = call("GET", `${MACHINES}/${id}/wait?timeout=300`);
    await expect.poll(() => server.open.waits).toBe(1);
    await server.api.close();
    const reply = await waiting;
    expect(reply).toMatchObject({ status: 503, body: { error: "unavailable" } });
    expect(reply.headers.get("retry-after")).toBe("1");
  });
});

describe("tokens", () => {
  test("are created, listed without their secret, and revoked", async () => {
    const { status, body: made } = await call("POST", "/v1/tokens", { name: "ci" });
    expect(status).toBe(201);
    const { body } = await call("GET", "/v1/tokens");
    expect(body.tokens).toMatchObject([{ name: "test" }, { id: made.id, name: "ci", revoked_at: null }]);
    expect(JSON.stringify(body)).not.toContain(made.token);
    const headers = { authorization: `Bearer ${made.token}` };
    expect(await call("GET", "/v1/apps", undefined, { headers })).toMatchObject({ status: 200 });
    expect(await call("DELETE", `/v1/tokens/${made.id}`)).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call("GET", "/v1/apps", undefined, { headers })).toMatchObject({ status: 401 });
    expect(await call("DELETE", `/v1/tokens/${made.id}`)).toMatchObject({ status: 404 });
  });
});

describe("the platform", () => {
  test("shows what it is, without a token", async () => {
    const headers = { authorization: "" };
    expect(await call("GET", "/v1/health", undefined, { headers })).toMatchObject({
      status: 200,
      body: { status: "ok", accelerator: "fake" },
    });
    expect(await call("GET", "/v1/platform/regions")).toMatchObject({
      body: { regions: [{ code: "local", name: "local" }] },
    });
  });

  test("drains: it refuses work, says so in its health, and works again afterwards", async () => {
    const drain = "/v1/platform/drain";
    const id = await createMachine();
    await call("GET", `${MACHINES}/${id}/wait`);
    expect(await call("GET", drain)).toMatchObject({ status: 200, body: { state: "none", machines: [] } });
    expect(await call("POST", drain, { suspend: true, timeout: 60 })).toMatchObject({
      status: 200,
      body: { state: "draining", suspend: true, deadline: expect.any(String), machines: [{ machine_id: id }] },
    });
    await call("GET", `${MACHINES}/${id}/wait?state=suspended`);
    const refused = await call("POST", `${MACHINES}/${id}/start`);
    expect(refused).toMatchObject({ status: 503, body: { error: "draining" } });
    expect(refused.headers.get("retry-after")).toBe("30");
    expect(await call("POST", MACHINES, { config: { image: "oci:/srv/app" } })).toMatchObject({ status: 503 });
    expect(await call("GET", "/v1/health")).toMatchObject({ status: 200, body: { status: "draining" } });
    expect(await call("POST", drain)).toMatchObject({ status: 412, body: { error: "failed_precondition" } });
    expect(await call("DELETE", drain)).toMatchObject({ status: 200, body: { state: "none" } });
    await call("GET", `${MACHINES}/${id}/wait`);
    expect(await call("GET", "/v1/health")).toMatchObject({ body: { status: "ok" } });
  });

  test.each([
    [{ timeout: 60 }, "has a time limit"],
    [{ suspend: true, timeout: 0 }, "timeout"],
    [{ suspend: true, timeout: 1.5 }, "timeout"],
    [{ suspend: true, timeout: 3601 }, "timeout"],
    [{ suspend: "yes" }, "suspend"],
    [{ suspended: true }, "did you mean `suspend`"],
  ])("a drain with %j is refused, and nothing is drained", async (body, message) => {
    const reply = await call("POST", "/v1/platform/drain", body);
    expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
    expect(reply.body.message).toContain(message);
    expect((await call("GET", "/v1/platform/drain")).body.state).toBe("none");
  });

  test("reports a broken database, and checks it at most once a second", async () => {
    let asked = 0;
    const ill = await testApi({
      check() {
        asked++;
        throw new Error("disk full");
      },
    });
    for (let i = 0; i < 5; i++) {
      expect(await ill.call("GET", "/v1/health")).toMatchObject({
        status: 503,
        body: { error: "unavailable", message: expect.stringContaining("disk full") },
      });
    }
    expect(asked).toBe(1);
  });

  test("counts machines, and requests by route rather than by path", async () => {
    const id = await createMachine();
    await call("GET", `${MACHINES}/${id}/wait`);
    await call("GET", "/nowhere");
    const headers = { authorization: `Bearer ${server.token}` };
    const response = await fetch(`${server.url}/metrics`, { headers });
    const text = await response.text();
    expect(response.headers.get("content-type")).toContain("text/plain");
    expect(text).toContain('hibernaut_machines{state="running"} 1');
    expect(text).toContain('route="/v1/apps/:app_name/machines/:machine_id/wait",status="200"} 1');
    expect(text).not.toContain(id);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
  });
});
