import fc from "fast-check";
import { Compile } from "typebox/schema";
import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { startApi, type TestApi } from "./helpers.ts";
import { type ApiDocument, type Call, checkedCalls } from "./openapi-check.ts";

const REQUESTS = longOr(3000, 1200);

let server: TestApi;
let call: Call;
let document: ApiDocument;
const ids: string[] = [];

beforeAll(async () => {
  server = await startApi();
  call = await checkedCalls(server);
  document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  await call("POST", "/v1/apps", { app_name: "shop" });
  const { body } = await call("POST", "/v1/apps/shop/machines", { config: { image: "x" } });
  ids.push(body.machine_id as string);
});
afterAll(() => server.close());

test("the document is OpenAPI 3.1 and has exactly the routes of the design", () => {
  expect(document.openapi).toBe("3.1.0");
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const machine = "/v1/apps/{app_name}/machines/{machine_id}";
  const volume = "/v1/apps/{app_name}/volumes/{volume_id}";
  expect(routes.toSorted()).toEqual(
    [
      "GET /v1/machines",
      `GET ${machine}/activity`,
      "GET /v1/apps",
      "POST /v1/apps",
      "GET /v1/apps/{app_name}",
      "PATCH /v1/apps/{app_name}",
      "DELETE /v1/apps/{app_name}",
      "GET /v1/apps/{app_name}/machines",
      "POST /v1/apps/{app_name}/machines",
      `GET ${machine}`,
      `POST ${machine}`,
      `DELETE ${machine}`,
      `POST ${machine}/start`,
      `POST ${machine}/stop`,
      `POST ${machine}/suspend`,
      `POST ${machine}/restart`,
      `POST ${machine}/cordon`,
      `POST ${machine}/uncordon`,
      `POST ${machine}/move`,
      "POST /v1/cluster/hosts/{host}/drain",
      "DELETE /v1/cluster/hosts/{host}/drain",
      "POST /v1/cluster/hosts/{host}/evacuate",
      `GET ${machine}/usage`,
      `GET ${machine}/wait`,
      `GET ${machine}/events`,
      `GET ${machine}/logs`,
      "GET /v1/apps/{app_name}/logs",
      "GET /v1/stream",
      "GET /v1/webhooks",
      "POST /v1/webhooks",
      "GET /v1/webhooks/{webhook_id}",
      "PATCH /v1/webhooks/{webhook_id}",
      "DELETE /v1/webhooks/{webhook_id}",
      "POST /v1/webhooks/{webhook_id}/test",
      "POST /v1/webhooks/{webhook_id}/rotate",
      "GET /v1/webhooks/{webhook_id}/deliveries",
      `POST ${machine}/exec`,
      `GET ${machine}/archive`,
      `PUT ${machine}/archive`,
      `GET ${machine}/archive/stat`,
      "GET /v1/apps/{app_name}/hostnames",
      "POST /v1/apps/{app_name}/hostnames",
      "DELETE /v1/apps/{app_name}/hostnames/{hostname}",
      "GET /v1/apps/{app_name}/certificates",
      "POST /v1/apps/{app_name}/certificates",
      "GET /v1/apps/{app_name}/certificates/{hostname}",
      "DELETE /v1/apps/{app_name}/certificates/{hostname}",
      "GET /v1/apps/{app_name}/certificates/{hostname}/check",
      "GET /v1/apps/{app_name}/quota",
      "PUT /v1/apps/{app_name}/quota",
      "GET /v1/apps/{app_name}/releases",
      "POST /v1/apps/{app_name}/releases",
      "POST /v1/apps/{app_name}/releases/{version}",
      "POST /v1/apps/{app_name}/releases/{version}/command",
      "PUT /v1/keepalive",
      "DELETE /v1/keepalive",
      "PUT /v1/wake",
      "DELETE /v1/wake",
      "POST /v1/prepared",
      "GET /v1/events",
      "POST /v1/events/{event_id}/ready",
      "GET /v1/audit",
      "GET /v1/timeline",
      "GET /v1/wakes",
      "GET /v1/platform/host",
      "GET /v1/platform/doctor",
      "GET /v1/cluster",
      "POST /v1/cluster/tokens",
      "DELETE /v1/cluster/disputed/{machine_id}",
      "DELETE /v1/cluster/hosts/{host}",
      "GET /v1/platform/drain",
      "POST /v1/platform/drain",
      "DELETE /v1/platform/drain",
      "GET /v1/platform/backup",
      "PUT /v1/apps/{app_name}/volumes/{volume_id}",
      "POST /v1/platform/backup",
      "GET /v1/platform/regions",
      "GET /v1/health",
      "GET /v1/apps/{app_name}/secrets",
      "POST /v1/apps/{app_name}/secrets",
      "DELETE /v1/apps/{app_name}/secrets/{secret_name}",
      "GET /v1/images",
      "DELETE /v1/images",
      "POST /v1/images/pull",
      "GET /v1/images/uploads",
      "POST /v1/images/uploads",
      "DELETE /v1/images/uploads/{digest}",
      "PATCH /v1/images/blobs/{digest}",
      "GET /v1/registries",
      "GET /v1/registries/{host}",
      "PUT /v1/registries/{host}",
      "DELETE /v1/registries/{host}",
      "GET /v1/apps/{app_name}/volumes",
      "POST /v1/apps/{app_name}/volumes",
      `GET ${volume}`,
      `DELETE ${volume}`,
      `PUT ${volume}/extend`,
      `GET ${volume}/snapshots`,
      `POST ${volume}/snapshots`,
      `DELETE ${volume}/snapshots/{snapshot_id}`,
      "POST /v1/session",
      "GET /v1/session",
      "DELETE /v1/session",
      "GET /v1/tokens",
      "GET /v1/usage",
      "POST /v1/tokens",
      "DELETE /v1/tokens/{token_id}",
      "POST /v1/tokens/{token_id}/rotate",
    ].toSorted(),
  );
});

test("every reference in the document resolves, and every schema compiles", () => {
  const names = new Set(Object.keys(document.components.schemas));
  for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(names).toContain(name);
  expect(JSON.stringify(document)).not.toMatch(/"\$ref":"(?!#\/components\/schemas\/)/);
  for (const schema of names) Compile({ $ref: `#/components/schemas/${schema}`, components: document.components });
});

const junk = fc.oneof(
  { weight: 3, arbitrary: fc.constant("shop") },
  fc.constantFrom("", "..", "%00", "%2e%2e", "null", "0", "ÿ", "a".repeat(200)),
  fc.string({ unit: "binary", maxLength: 40 }),
);
const id = fc.oneof(fc.constant("known"), junk);
const body = fc.oneof(
  fc.constant(undefined),
  fc.string({ maxLength: 50 }),
  fc.json(),
  fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify({ config: value })),
  fc
    .jsonValue({ maxDepth: 3 })
    .map((config) => JSON.stringify({ config: { image: "x", services: [config], env: config } })),
  fc.integer({ min: 0 }).map((number) => JSON.stringify({ app_name: `app-${number}` })),
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '{"app_name":"shop"}',
      '{"config":{"image":"x"}}',
      '{"config":{"image":"broken"},"skip_launch":true}',
      '{"name":"t"}',
      "{}",
    ),
  },
);
const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant("") },
  fc.constantFrom(
    "?force=true",
    "?state=stopped&timeout=1",
    "?state=settled",
    "?limit=1",
    "?state=&timeout=",
    "?limit=1e9",
  ),
  fc
    .string({ unit: "binary", maxLength: 30 })
    .map((text) => `?${encodeURIComponent(text)}=${encodeURIComponent(text)}`),
);
const contentType = fc.oneof(
  { weight: 9, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: fc.constantFrom("text/plain", "a/b;c") },
);

test("random requests never cause a 5xx, and every reply matches the document", { timeout: 120_000 }, async () => {
  const templates = [...Object.keys(document.paths), "/openapi.json", "/no/such/{app_name}"];
  const methods = ["GET", "POST", "POST", "POST", "DELETE", "PUT"];
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        // Routes that create things more often than others, because the other requests need them.
        template: fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom(...templates) },
          { weight: 3, arbitrary: fc.constantFrom("/v1/apps", "/v1/apps/{app_name}/machines") },
        ),
        method: fc.constantFrom(...methods),
        app: junk,
        id,
        body,
        query,
        contentType,
      }),
      async ({ template, method, ...given }) => {
        // A wait for a state that is never reached would only be slow, and a stream that is followed never ends.
        const endless = (template.endsWith("/wait") && !given.query.includes("timeout")) || template === "/v1/stream";
        const search = endless ? (template === "/v1/stream" ? "?follow=0" : "?timeout=1&state=settled") : given.query;
        const machine = given.id === "known" ? (ids[0] ?? "") : encodeURIComponent(given.id);
        const path = template
          .replace("{app_name}", encodeURIComponent(given.app).replace(/^\.+$/, "%2e"))
          .replace("{machine_id}", machine)
          .replace("{token_id}", encodeURIComponent(given.id));
        if (template === "/openapi.json" && method === "GET") return;
        const sends = method !== "GET" && given.body !== undefined;
        const headers = sends ? { "content-type": given.contentType } : {};
        const { status } = await call(method, path + search, sends ? given.body : undefined, { headers });
        expect(status).toBeLessThan(500);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        // A drain would refuse everything after it.
        server.platform.drain.end();
        await reviveApp();
      },
    ),
    { numRuns: REQUESTS },
  );
  expect(server.logged).toEqual([]);
  // Requests that never get past validation would prove nothing.
  for (const status of [200, 201, 400, 404]) expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(5);
});

/** A random request may delete the app or the machine. The next one should find them again. */
async function reviveApp(): Promise<void> {
  const { platform, world } = server;
  if (world.store.apps.get("shop") === undefined) platform.apps.create("shop");
  const known = world.store.machines.get(ids[0] ?? "");
  if (known?.app === "shop" && known.state !== "destroyed" && known.state !== "destroying") return;
  const { record } = await platform.machines.create("shop", { config: { image: "x" } });
  ids[0] = record.id;
}
