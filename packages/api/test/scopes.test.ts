import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { createToken } from "../src/tokens.ts";
import { as, startApi, type TestApi } from "./helpers.ts";
import { type ApiDocument, type Call, checkedCalls, type Reply } from "./openapi-check.ts";
import { SCOPE_TABLE, verdictOf, type Word } from "./scope-table.ts";

const SCOPES: readonly Word[] = ["read", "exec", "deploy", "admin"];

let server: TestApi;
let call: Call;
let routes: string[];
/** One machine and one volume of each app. */
const machines: Record<string, string> = {};
const volumes: Record<string, string> = {};

beforeAll(async () => {
  server = await startApi();
  call = await checkedCalls(server);
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  // WebSockets and metrics are in no OpenAPI document.
  const pattern = "/v1/apps/{app_name}/machines/{machine_id}";
  routes.push(`GET ${pattern}/exec`, `GET ${pattern}/forward`, "GET /metrics");
  for (const app of ["shop", "bank"]) {
    await call("POST", "/v1/apps", { app_name: app });
    const machine = await call("POST", `/v1/apps/${app}/machines`, { config: { image: "x" } });
    const volume = await call("POST", `/v1/apps/${app}/volumes`, { name: "data", size_gb: 1 });
    machines[app] = machine.body.id;
    volumes[app] = volume.body.id;
    await call("POST", `/v1/apps/${app}/hostnames`, { hostname: `${app}.example.com` });
    await call("POST", `/v1/apps/${app}/secrets`, { secrets: { KEY: app } });
  }
});
afterAll(() => server.close());

function tokenFor(scopes: Word[], apps: string[] | null = null): string {
  return createToken(server.tokens, "test", { scopes, apps }).token;
}

/** Sends a request that gets past the door and no further: its body is not acceptable, or what it names is not there. */
async function knock(route: string, token: string, app: string): Promise<Pick<Reply, "status" | "body">> {
  if (route === "GET /metrics") {
    const response = await fetch(`${server.url}/metrics`, as(token));
    return { status: response.status, body: response.ok ? {} : await response.json() };
  }
  const [method = "", path = ""] = route.split(" ");
  const filled = path
    .replace("{app_name}", app)
    .replace("{machine_id}", "no-such-machine")
    .replace("{volume_id}", "no-such-volume")
    .replaceAll(/\{\w+\}/g, "no-such-thing");
  const body = method === "GET" || method === "DELETE" ? undefined : "[]";
  return call(method, filled + (body === undefined ? "?no-such-parameter=1" : ""), body, as(token));
}

test("the table has every route, and no other", () => {
  expect(Object.keys(SCOPE_TABLE).toSorted()).toEqual(routes.toSorted());
});

describe.each([
  ["all apps", null],
  ["its own app", ["shop"]],
] as const)("a token for %s", (_title, apps) => {
  test.each(SCOPES.map((scope) => [scope]))("with the scope %s gets in exactly where the table says", async (scope) => {
    const token = tokenFor([scope], apps === null ? null : [...apps]);
    const check = async (route: string) => {
      const named = route.includes("{app_name}");
      for (const app of named ? ["shop", "bank", "no-such-app"] : ["shop"]) {
        const expected = verdictOf(route, { scopes: [scope], apps }, named ? app : undefined);
        const { status, body } = await knock(route, token, app);
        const what = `${scope} ${route} (${app}): ${status} ${JSON.stringify(body)}`;
        if (expected === "refused") {
          expect(status, what).toBe(403);
          if (SCOPE_TABLE[route] !== "machines only")
            expect(body.message, what).toMatch(/needs a token with the scope `\w+`/);
        } else if (expected === "hidden") expect(status, what).toBe(404);
        else expect(status, what).not.toBe(403);
        if (expected === "in" && app !== "no-such-app")
          expect(JSON.stringify(body), what).not.toContain("limited to the apps");
      }
    };
    await Promise.all(routes.map(check));
  });
});

test("an app out of reach looks like one that does not exist", async () => {
  const token = tokenFor(["admin"], ["shop"]);
  const [foreign, absent] = await Promise.all(
    ["bank", "none"].map((app) => call("GET", `/v1/apps/${app}/machines/${machines.bank}`, undefined, as(token))),
  );
  expect(foreign?.status).toBe(404);
  expect(foreign?.body.message.replace("bank", "none")).toBe(absent?.body.message);
});

test("nothing of another app is reached by its id, name or snapshot under the own app", async () => {
  const token = tokenFor(["admin"], ["shop"]);
  const init = as(token);
  for (const [method, path, body] of [
    ["GET", `/v1/apps/shop/machines/${machines.bank}`],
    ["GET", `/v1/apps/shop/machines/${machines.bank}/usage`],
    ["GET", `/v1/apps/shop/machines/${machines.bank}/events`],
    ["POST", `/v1/apps/shop/machines/${machines.bank}/exec`, { command: ["id"] }],
    ["POST", `/v1/apps/shop/machines/${machines.bank}/start`],
    ["DELETE", `/v1/apps/shop/machines/${machines.bank}?force=true`],
    ["GET", `/v1/apps/shop/logs?machine=${machines.bank}`],
    ["GET", `/v1/apps/shop/volumes/${volumes.bank}`],
    ["DELETE", `/v1/apps/shop/volumes/${volumes.bank}`],
    ["DELETE", "/v1/apps/shop/hostnames/bank.example.com"],
    ["POST", "/v1/apps/shop/volumes", { name: "copy", snapshot_id: await bankSnapshot() }],
    ["POST", "/v1/apps/shop/machines", { config: { image: "x", mounts: [{ volume: volumes.bank, path: "/data" }] } }],
  ] as const) {
    const { status, body: reply } = await call(method, path, body, init);
    expect(status, `${method} ${path} ${JSON.stringify(reply)}`).toBe(404);
  }
  const taken = await call("POST", "/v1/apps/shop/hostnames", { hostname: "bank.example.com" }, init);
  expect(taken).toMatchObject({ status: 409, body: { message: expect.stringContaining("another app") } });
  expect(JSON.stringify(taken.body).replaceAll("bank.example.com", "")).not.toContain("bank");
});

async function bankSnapshot(): Promise<string> {
  return (await call("POST", `/v1/apps/bank/volumes/${volumes.bank}/snapshots`)).body.id;
}

test("lists show what belongs to the token's apps, and no more", async () => {
  const init = as(tokenFor(["read"], ["shop"]));
  const apps = await call("GET", "/v1/apps", undefined, init);
  expect(apps.body).toMatchObject({ total_apps: 1, apps: [{ name: "shop" }] });
  const listed = await call("GET", "/v1/machines", undefined, init);
  expect(listed.body.map(({ app_name }: { app_name: string }) => app_name)).toEqual(["shop"]);
  for (const by of ["app", "machine", "day"]) {
    const usage = await call("GET", `/v1/usage?group_by=${by}`, undefined, init);
    expect(usage.status).toBe(200);
    expect(JSON.stringify(usage.body)).not.toContain("bank");
  }
  expect(await call("GET", "/v1/usage?app=bank", undefined, init)).toMatchObject({ status: 404 });
  const told = await call("GET", "/v1/stream?since=0&follow=0", undefined, init);
  expect(new Set(told.body.map(({ app_name }: { app_name: string }) => app_name))).toEqual(new Set(["shop"]));
  expect(await call("GET", "/v1/stream?app=bank", undefined, init)).toMatchObject({ status: 404 });
});

test("files of the host are not for limited tokens", async () => {
  const init = as(tokenFor(["deploy"], ["shop"]));
  for (const [path, body] of [
    ["/v1/images/pull", { ref: "oci:/etc" }],
    ["/v1/apps/shop/machines", { config: { image: "docker-daemon:nginx:1" } }],
    ["/v1/apps/shop/templates", { from: { image: "oci:/srv/other-app" } }],
    ["/v1/apps/shop/releases", { image: "oci-archive:/root/x.tar" }],
  ] as const)
    expect(await call("POST", path, body, init)).toMatchObject({ status: 403, body: { details: { upload: true } } });
});

test("a WebSocket is refused before it is one", async () => {
  const url = server.url.replace("http", "ws");
  const status = async (token: string, app: string, path: string) => {
    const socket = new WebSocket(`${url}/v1/apps/${app}/machines/${machines[app]}/${path}`, as(token));
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    return response.statusCode;
  };
  for (const path of ["exec?command=id", "forward?port=80"]) {
    expect(await status(tokenFor(["deploy"]), "shop", path)).toBe(403);
    expect(await status(tokenFor(["admin"], ["shop"]), "bank", path)).toBe(404);
  }
});

test("a token loses an app that is deleted, also when another of that name is created", async () => {
  await call("POST", "/v1/apps", { app_name: "brief" });
  const token = tokenFor(["admin"], ["brief"]);
  expect(await call("GET", "/v1/apps/brief", undefined, as(token))).toMatchObject({ status: 200 });
  await call("DELETE", "/v1/apps/brief");
  await call("POST", "/v1/apps", { app_name: "brief" });
  expect(await call("GET", "/v1/apps/brief", undefined, as(token))).toMatchObject({ status: 404 });
  expect((await call("GET", "/v1/apps", undefined, as(token))).body.apps).toEqual([]);
});

test("a route that does not say its scope cannot be registered", async () => {
  const { requireScopes } = await import("../src/route.ts");
  const { default: fastify } = await import("fastify");
  const app = fastify();
  requireScopes(app);
  expect(() => app.get("/v1/new", async () => ({}))).toThrow("scope");
  await app.close();
});
