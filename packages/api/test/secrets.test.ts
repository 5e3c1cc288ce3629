import { beforeEach, expect, test } from "vitest";
import { type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi());
});

const SECRETS = "/v1/apps/shop/secrets";
const VALUE = "s3cret-value";

async function suspendedMachine(): Promise<string> {
  const { body } = await call("POST", "/v1/apps/shop/machines", { config: { image: "x" } });
  const at = `/v1/apps/shop/machines/${body.id}`;
  await call("GET", `${at}/wait`);
  await call("POST", `${at}/suspend`);
  await call("GET", `${at}/wait?state=suspended`);
  return body.id as string;
}

test("are set, listed without their values, and unset", async () => {
  expect(await call("GET", SECRETS)).toMatchObject({ status: 200, body: { secrets: [] } });
  expect(await call("POST", SECRETS, { secrets: { B: VALUE, A: VALUE } })).toMatchObject({
    status: 200,
    body: { discarded: [], pending: [] },
  });
  const { body } = await call("GET", SECRETS);
  const line = { digest: expect.stringMatching(/^[0-9a-f]{16}$/), updated_at: expect.any(String) };
  expect(body.secrets).toEqual([
    { name: "A", ...line },
    { name: "B", ...line },
  ]);
  expect(JSON.stringify(body)).not.toContain(VALUE);
  expect(await call("DELETE", `${SECRETS}/A`)).toMatchObject({ status: 200, body: { discarded: [], pending: [] } });
  expect(await call("DELETE", `${SECRETS}/A`)).toMatchObject({ status: 404, body: { error: "not_found" } });
  expect((await call("GET", SECRETS)).body.secrets).toHaveLength(1);
});

test("replies list the affected machines, and a dry run changes nothing", async () => {
  const id = await suspendedMachine();
  const effect = { discarded: [id], pending: [] };
  expect((await call("POST", `${SECRETS}?dry_run=true`, { secrets: { A: "1" } })).body).toEqual(effect);
  expect((await call("GET", SECRETS)).body.secrets).toEqual([]);
  expect((await call("GET", `/v1/apps/shop/machines/${id}`)).body.snapshot).not.toBeNull();
  expect((await call("POST", SECRETS, { secrets: { A: "1" } })).body).toEqual(effect);
  expect((await call("GET", `/v1/apps/shop/machines/${id}/wait?state=suspended`)).status).toBe(200);
  expect((await call("GET", `/v1/apps/shop/machines/${id}`)).body.snapshot).toBeNull();
  expect((await call("DELETE", `${SECRETS}/A?dry_run=true`)).body).toEqual({ discarded: [], pending: [] });
  expect((await call("GET", SECRETS)).body.secrets).toHaveLength(1);
});

test.each([
  ["no name at all", { secrets: {} }],
  ["an invalid name", { secrets: { "A-B": VALUE } }],
  ["a reserved name", { secrets: { FLY_REGION: VALUE } }],
  ["a value that is not text", { secrets: { A: [VALUE] } }],
  ["one invalid value of two", { secrets: { A: "fine", B: `${VALUE}\0` } }],
  ["a value that is too long", { secrets: { A: VALUE.repeat(5000) } }],
  ["an unknown key", { secret: { A: VALUE } }],
  ["a poisoned key", '{"secrets":{"__proto__":{"x":1}}}'],
  ["not JSON", `{"secrets": ${VALUE}`],
])("%s is refused; nothing is set, and no value is repeated", async (_what, body) => {
  const reply = await call("POST", SECRETS, body);
  expect(reply).toMatchObject({ status: 400, body: { error: "invalid_argument" } });
  expect(JSON.stringify([reply.body, server.logged])).not.toContain(VALUE);
  expect((await call("GET", SECRETS)).body.secrets).toEqual([]);
});

test("an app that does not exist is 404", async () => {
  for (const [method, path, body] of [
    ["GET", "/v1/apps/gone/secrets", undefined],
    ["POST", "/v1/apps/gone/secrets", { secrets: { A: "1" } }],
    ["DELETE", "/v1/apps/gone/secrets/A", undefined],
  ] as const)
    expect(await call(method, path, body)).toMatchObject({ status: 404 });
});
