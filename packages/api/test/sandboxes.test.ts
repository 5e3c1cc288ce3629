/** Sandboxes in the API: refused while nothing would end them, and shown without what is theirs alone. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { startApi, type TestApi } from "./helpers.ts";

let server: TestApi;
beforeEach(async () => {
  server = await startApi();
  server.platform.apps.create("shop");
});
afterEach(() => server.close());

async function call(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
  const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
  const response = await fetch(`${server.url}/v1/apps/shop${path}`, { method, headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

test("one is refused while the port of sandboxes is off, with advice, and nothing is made", async () => {
  const refused = await call("POST", "/machines", { template: "base", sandbox: {} });
  expect(refused).toMatchObject({
    status: 412,
    body: { error: "failed_precondition", message: expect.stringMatching(/HIBERNAUT_SANDBOX_LISTEN .* restart/) },
  });
  expect(server.platform.machines.list("shop")).toEqual([]);
  expect((await call("GET", "")).body).not.toHaveProperty("sandbox_port_url");
});

test("what its client told its programs, and where they may connect to, is not shown", async () => {
  const { record } = await server.platform.machines.create("shop", { config: { image: "app:1" } });
  expect((await call("GET", `/machines/${record.id}`)).body).toMatchObject({ sandbox: null });
  const shown = {
    ...{ template: "base", metadata: { task: "17" }, timeout_s: 60, on_timeout: "pause" as const, auto_resume: false },
    started_at: "2026-11-27T08:00:00.000Z",
    ends_at: "2026-11-27T08:01:00.000Z",
  };
  const hidden = { env: { KEY: "secret" }, secure: true, network: { deny_out: ["10.0.0.0/8"] } };
  server.platform.machines.setSandbox("shop", record.id, { ...shown, ...hidden });
  expect((await call("GET", `/machines/${record.id}`)).body).toMatchObject({ sandbox: shown });
  expect(JSON.stringify((await call("GET", "/machines")).body)).not.toMatch(/secret|10\.0\.0\.0/);
});
