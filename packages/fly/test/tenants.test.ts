/** Who has a token for one app can do nothing to another one, and who may only read changes nothing. */
import type { Scope } from "@hibernaut/domain/scopes";
import { expect, test } from "vitest";
import { createToken } from "../../api/src/tokens.ts";
import { path } from "../src/ask.ts";
import { REFUSED } from "../src/routes/refused.ts";
import { startFly } from "./helpers.ts";
import { pathOf, registered } from "./routes.ts";

const BODIES: Readonly<Record<string, unknown>> = {
  "/apps/:app_name/machines": { config: { image: "x" } },
  "/apps/:app_name/machines/:machine_id": { config: { image: "x" } },
  "/apps/:app_name/machines/:machine_id/exec": { cmd: "id" },
  "/apps/:app_name/machines/:machine_id/signal": { signal: 9 },
  "/apps/:app_name/machines/:machine_id/metadata/:key": { value: "x" },
  "/apps/:app_name/volumes": { name: "data" },
  "/apps/:app_name/volumes/:volume_id/extend": { size_gb: 2 },
  "/apps/:app_name/secrets": { values: { A: "x" } },
  "/apps/:app_name/secrets/:secret_name": { value: "x" },
  "/apps/:app_name/certificates/acme": { hostname: "www.example.com" },
};
const IS_REFUSED = new Set(REFUSED.map(([method, url]) => `${method} ${url}`));
/** Those that the platform answers at all, except what asks about no app. */
const OF_APPS = registered().filter(
  ({ method, url }) =>
    url.includes(":app_name") && !IS_REFUSED.has(`${method} ${url}`) && !url.endsWith("/ip_assignments"),
);

async function twoTenants() {
  const fly = await startFly();
  const { platform, call } = fly;
  const names: Record<string, string> = { app_name: "bank", key: "user", secret_name: "PIN", hostname: "a.example" };
  for (const name of ["shop", "bank"]) await call("POST", "/v1/apps", { name });
  const config = { image: "x", metadata: { user: "1" } };
  const { body: machine } = await call<{ id: string }>("POST", "/v1/apps/bank/machines", { config });
  const { body: volume } = await call<{ id: string }>("POST", "/v1/apps/bank/volumes", { name: "data" });
  await call("POST", "/v1/apps/bank/secrets", { values: { PIN: "1234" } });
  names["machine_id"] = machine.id;
  names["volume_id"] = volume.id;
  const token = (scope: Scope, apps: string[] | null) =>
    createToken(platform.tokens, `${scope} ${apps?.join() ?? "all"}`, { scopes: [scope], apps }).token;
  return { ...fly, names, token, machine: machine.id };
}

test("the other app does not even exist", async () => {
  const { call, names, token } = await twoTenants();
  const headers = { authorization: `Bearer ${token("deploy", ["shop"])}` };
  for (const { method, url } of OF_APPS) {
    const body = method === "GET" || method === "DELETE" ? undefined : (BODIES[url] ?? {});
    const answer = await call<{ error: string }>(method, pathOf(url, names), body, headers);
    expect([method, url, answer.status]).toEqual([method, url, 404]);
    expect(answer.body.error).not.toContain("internal");
  }
  const { body: apps } = await call<{ apps: { name: string }[] }>("GET", "/v1/apps", undefined, headers);
  expect(apps.apps.map(({ name }) => name)).toEqual(["shop"]);
  const { body: machines } = await call<{ machines: unknown[] }>(
    "GET",
    "/v1/orgs/personal/machines",
    undefined,
    headers,
  );
  expect(machines.machines).toEqual([]);
  const query = "query ($appName: String!) { appcompact:app(name: $appName) { id } }";
  const { body: found } = await call("POST", "/graphql", { query, variables: { appName: "bank" } }, headers);
  expect(found).toMatchObject({ data: null, errors: [{ message: expect.stringContaining("Could not find App") }] });
});

test("a token that reads changes nothing", async () => {
  const { call, names, token, platform } = await twoTenants();
  const headers = { authorization: `Bearer ${token("read", null)}` };
  const before = platform.world.store.machines.get(names["machine_id"] ?? "");
  for (const { method, url } of OF_APPS) {
    if (method === "GET" || url.endsWith("/check")) continue;
    const answer = await call(
      method,
      pathOf(url, names),
      method === "DELETE" ? undefined : (BODIES[url] ?? {}),
      headers,
    );
    expect([method, url, answer.status]).toEqual([method, url, 403]);
  }
  expect(platform.world.store.machines.get(names["machine_id"] ?? "")).toEqual(before);
});

test("names in a path lead nowhere else", async () => {
  const { call, machine } = await twoTenants();
  for (const name of ["bank%2f..%2fshop", "bank%2Fmachines%2F..", "%00"])
    expect([name, (await call("GET", `/v1/apps/${name}/machines/${machine}`)).status]).toEqual([name, 404]);
  // Clients written in JavaScript resolve these by themselves; others send them.
  for (const name of ["..", ".", ""]) expect(() => path`/v1/apps/${name}`).toThrow("There is nothing with the name");
});

test("a token is needed, and one of Fly's own is refused in words", async () => {
  const { call, platform } = await twoTenants();
  const refusals = {
    "": "needs a token",
    "Basic abc": "needs a token",
    "FlyV1 fm2_abc,fm2_def": "only Fly can read",
    "Bearer nonsense": "unknown or revoked",
  };
  for (const [authorization, words] of Object.entries(refusals))
    expect(await call("GET", "/v1/apps", undefined, { authorization })).toMatchObject({
      status: 401,
      body: { error: expect.stringContaining(words) },
    });
  expect(await call("GET", "/v1/apps", undefined, { authorization: `FlyV1 ${platform.token}` })).toMatchObject({
    status: 200,
  });
});
