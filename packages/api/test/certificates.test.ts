/** Certificates over HTTP. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AuthorityFault } from "@hibernaut/certs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startApi, type TestApi } from "./helpers.ts";
import { type Call, checkedCalls } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
const PATH = "/v1/apps/shop/certificates";

beforeAll(async () => {
  server = await startApi();
  call = await checkedCalls(server);
  await call("POST", "/v1/apps", { app_name: "shop" });
  for (const hostname of ["www.example.com", "bad.example.com"])
    await call("POST", "/v1/apps/shop/hostnames", { hostname });
});
afterAll(() => server.close());

async function settled(hostname: string) {
  return vi.waitFor(async () => {
    const { body } = await call("GET", `${PATH}/${hostname}`);
    expect(body.status).not.toBe("ordering");
    return body;
  });
}

test("a certificate is added, listed, checked and removed, and no reply has a key", async () => {
  const added = await call("POST", PATH, { hostname: "WWW.example.com" });
  expect(added).toMatchObject({ status: 201, body: { hostname: "www.example.com", challenge: "http-01" } });
  const certificate = await settled("www.example.com");
  expect(certificate).toMatchObject({ status: "valid", issuer: "Fake authority", failure: null });
  expect((await call("GET", PATH)).body.certificates).toEqual([certificate]);
  const { body } = await call("GET", `${PATH}/www.example.com/check`);
  expect(body.findings).toEqual([{ what: "dns", status: "ok", found: "It leads to this host.", records: [] }]);
  const file = join(server.world.folder, "certificates/www.example.com.pem");
  const key = /-----BEGIN PRIVATE KEY-----\n(.+)\n/.exec(await readFile(file, "utf8"))?.[1] ?? "";
  expect(key.length).toBeGreaterThan(50);
  expect(JSON.stringify([added.body, certificate])).not.toContain(key);
  expect(await call("DELETE", `${PATH}/www.example.com`)).toMatchObject({ status: 200 });
  expect(await call("GET", `${PATH}/www.example.com`)).toMatchObject({ status: 404, body: { error: "not_found" } });
});

test("an order that fails says why, and when it is tried again", async () => {
  server.authority.fault = new AuthorityFault("refused", "The authority could not verify bad.example.com: timeout");
  await call("POST", PATH, { hostname: "bad.example.com" });
  const { status, failure } = await settled("bad.example.com");
  expect(status).toBe("failed");
  expect(failure).toMatchObject({ reason: expect.stringMatching(/: timeout\.$/), attempts: 1 });
  expect(Date.parse(failure.next_at)).toBeGreaterThan(Date.now());
  server.authority.fault = undefined;
});

test.each([
  ["GET", "/v1/apps/none/certificates", undefined, 404],
  ["POST", "/v1/apps/none/certificates", { hostname: "www.example.com" }, 404],
  ["POST", PATH, { hostname: "other.example.com" }, 412],
  ["POST", PATH, { hostname: "*.example.com" }, 412],
  ["POST", PATH, { hostname: "shop.localhost" }, 412],
  ["POST", PATH, { hostname: "" }, 400],
  ["POST", PATH, { hostname: "www.example.com", more: 1 }, 400],
  ["POST", PATH, { hostname: "www.example.com", agree_to_terms: "maybe" }, 400],
  ["GET", `${PATH}/${encodeURIComponent("../../x")}`, undefined, 404],
  ["GET", `${PATH}/none.example.com/check`, undefined, 412],
  ["DELETE", `${PATH}/${"a.".repeat(120)}example.com`, undefined, 404],
])("%s %s %j is refused with %d", async (method, path, body, status) => {
  const reply = await call(method, path, body);
  expect(reply.status).toBe(status);
});
