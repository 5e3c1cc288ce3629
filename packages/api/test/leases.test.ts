/** Leases over HTTP: which routes they hold back, for whom, and what the replies say. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Grant } from "@hibernaut/domain/scopes";
import { beforeEach, expect, test } from "vitest";
import { isHeld, NOT_HELD } from "../src/lease-guard.ts";
import { createToken } from "../src/tokens.ts";
import { as, type TestApi, testApi } from "./helpers.ts";
import type { ApiDocument, Call } from "./openapi-check.ts";
import { SCOPE_TABLE } from "./scope-table.ts";

let server: TestApi;
let call: Call;
const local = new WeakMap<object, string>();
beforeEach(async () => {
  ({ server, call } = await testApi({ local }));
});

const MACHINES = "/v1/apps/shop/machines";
const withNonce = (nonce: string) => ({ headers: { "hibernaut-lease-nonce": nonce } });

async function machine(body: object = {}): Promise<string> {
  return (await call("POST", MACHINES, { config: { image: "app:1" }, skip_launch: true, ...body })).body.id;
}

/** Every documented route about a machine. WebSockets, which are reads, are not among them. */
async function routes(): Promise<[method: string, path: string][]> {
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  return Object.entries(paths)
    .filter(([path]) => path.includes("{machine_id}"))
    .flatMap(([path, item]) => Object.keys(item).map((method): [string, string] => [method.toUpperCase(), path]));
}

/** Bodies that get past the validator. A new route that needs one belongs here. */
const BODIES: Readonly<Record<string, object>> = {
  "": { config: { image: "app:2" } },
  "/restore": { template: "none" },
  "/signal": { signal: "SIGHUP" },
  "/egress": {},
  "/metadata": { a: "b" },
  "/metadata/{key}": { value: "b" },
  "/files/directory": {},
  "/exec": { command: ["true"] },
};

/** What a lease does not hold back although it is more than a read, as the documents say. */
const FREE = new Set([
  "POST /lease",
  "DELETE /lease",
  "POST /exec",
  "PUT /archive",
  "DELETE /files",
  "PUT /files/directory",
  "POST /fork",
  "PATCH /metadata",
  "POST /metadata/{key}",
  "DELETE /metadata/{key}",
  "POST /signal",
]);

test("a lease holds back what changes the machine, on every route, unless its nonce is sent", async () => {
  const id = await machine();
  const { nonce, owner } = (await call("POST", `${MACHINES}/${id}/lease`, { ttl: 3600 })).body;
  const tenant = as(createToken(server.tokens, "tenant", { apps: ["shop"] }).token).headers;
  const items = (await routes()).filter(([, path]) => path.startsWith("/v1/apps/"));
  expect(items.length).toBeGreaterThan(30);
  const knock = (method: string, path: string, sent: Record<string, string> = {}) => {
    const rest = path.slice("/v1/apps/{app_name}/machines/{machine_id}".length);
    const query = /files|archive/.test(rest) ? "?path=/x" : "";
    const body = method === "GET" || method === "DELETE" ? undefined : (BODIES[rest] ?? {});
    const isArchive = method === "PUT" && rest === "/archive";
    const headers = { ...tenant, ...sent, ...(isArchive && { "content-type": "application/x-tar" }) };
    return call(method, `${MACHINES}/${id}${rest.replace("{key}", "k")}${query}`, body, { headers });
  };
  let held = 0;
  for (const [method, path] of items.filter(([, each]) => !each.endsWith("/wait"))) {
    const name = `${method} ${path.slice("/v1/apps/{app_name}/machines/{machine_id}".length)}`;
    const free = method === "GET" || FREE.has(name);
    const { status, body } =
      name === "POST /lease" || name === "DELETE /lease" ? { status: 0, body: {} } : await knock(method, path);
    if (free) expect(body.error, `${name} is free: ${JSON.stringify(body)}`).not.toBe("lease_held");
    else {
      held += 1;
      expect([status, body.error], `${name} is held back: ${JSON.stringify(body)}`).toEqual([409, "lease_held"]);
      expect(body.details).toMatchObject({ machine_id: id, owner });
      expect(JSON.stringify(body)).not.toContain(nonce);
    }
  }
  expect(held).toBeGreaterThan(10);
  // The machine is as it was.
  expect((await call("GET", `${MACHINES}/${id}`)).body).toMatchObject({ state: "created", cordoned: false });
  const last = (a: [string, string]) => Number(a[0] === "DELETE" && a[1].endsWith("{machine_id}"));
  for (const [method, path] of items.toSorted((a, b) => last(a) - last(b))) {
    if (!isHeld(method, path.replaceAll(/\{(\w+)\}/g, ":$1"))) continue;
    const { body } = await knock(method, path, withNonce(nonce).headers);
    expect(body.error, `${method} ${path}: ${JSON.stringify(body)}`).not.toBe("lease_held");
  }
});

test("what is exempt exists, and all else about a machine that is not a read is held back", async () => {
  const patterns = Object.keys(SCOPE_TABLE).map((route) => route.replaceAll(/\{(\w+)\}/g, ":$1"));
  expect(patterns).toEqual(expect.arrayContaining([...NOT_HELD]));
  expect(isHeld("POST", "/v1/apps/:app_name/machines/:machine_id/to-come")).toBe(true);
  expect(isHeld("POST", "/v1/apps/:app_name/machines")).toBe(false);
});

test("of clients that ask at once, one gets the lease, and the others hear whose it is", async () => {
  const id = await machine({ name: "web" });
  const { token, record } = createToken(server.tokens, "deployer");
  const take = () => call("POST", `${MACHINES}/web/lease`, { description: "deploy 7" }, as(token));
  const replies = await Promise.all(Array.from({ length: 8 }, take));
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  const others = replies.filter(({ status }) => status === 409);
  expect(others).toHaveLength(7);
  expect(others[0]?.body).toMatchObject({
    error: "lease_held",
    details: { owner: record.id, description: "deploy 7" },
  });
  const shown = await call("GET", `${MACHINES}/${id}/lease`);
  expect(shown.body).toEqual({
    owner: record.id,
    description: "deploy 7",
    expires_at: expect.any(String),
    version: expect.any(String),
  });
});

test("a lease is renewed and given back with its nonce, and ended by force, which the audit log notes", async () => {
  const id = await machine();
  const path = `${MACHINES}/${id}/lease`;
  const none = await call("GET", path);
  expect(none).toMatchObject({
    status: 404,
    body: { error: "not_found", message: expect.stringMatching(/^lease not found/) },
  });
  const { nonce, expires_at: first } = (await call("POST", path)).body;
  const renewed = await call("POST", path, { ttl: 600 }, withNonce(nonce));
  expect(renewed).toMatchObject({ status: 200, body: { nonce } });
  expect(Date.parse(renewed.body.expires_at)).toBeGreaterThan(Date.parse(first));
  expect(await call("DELETE", path)).toMatchObject({ status: 409, body: { error: "lease_held" } });
  expect(await call("DELETE", path, undefined, withNonce(nonce))).toMatchObject({ status: 200 });
  expect(await call("DELETE", path, undefined, withNonce(nonce))).toMatchObject({ status: 404 });
  await call("POST", path);
  expect(await call("DELETE", `${path}?force=true`)).toMatchObject({ status: 200 });
  expect(await call("POST", `${MACHINES}/${id}/cordon`)).toMatchObject({ status: 200 });
  const audit = await call("GET", "/v1/audit?app=shop&limit=1000");
  const cleared = audit.body.filter((line: { target: { force?: boolean } }) => line.target.force === true);
  expect(cleared).toMatchObject([{ method: "DELETE", target: { machine_id: id } }, { status: 200 }]);
  expect(JSON.stringify(audit.body)).not.toContain(nonce);
});

test("an administrator destroys and moves a machine that a tenant has leased; nobody else does", async () => {
  const id = await machine();
  const tokenOf = (options: Partial<Grant>) => as(createToken(server.tokens, "made", options).token);
  const tenant = tokenOf({ scopes: ["deploy"], apps: ["shop"] });
  await call("POST", `${MACHINES}/${id}/lease`, { ttl: 86_400 }, tenant);
  const path = `${MACHINES}/${id}`;
  const held = { status: 409, body: { error: "lease_held" } };
  for (const options of [{ apps: ["shop"] }, { scopes: ["deploy" as const] }])
    expect(await call("DELETE", `${path}?force=true`, undefined, tokenOf(options))).toMatchObject(held);
  expect(await call("DELETE", path)).toMatchObject(held);
  expect(await call("POST", `${path}/move`, {}, tokenOf({ apps: ["shop"] }))).toMatchObject(held);
  // This host has no other one.
  expect(await call("POST", `${path}/move`, {})).toMatchObject({ body: { error: "failed_precondition" } });
  expect(await call("DELETE", `${path}?force=true`)).toMatchObject({ status: 200 });
  // Two programs of the administrator keep out of each other's way.
  const other = await machine();
  await call("POST", `${MACHINES}/${other}/lease`, {}, tokenOf({}));
  expect(await call("DELETE", `${MACHINES}/${other}?force=true`)).toMatchObject(held);
});

test("a tenant learns no name of a token that reaches further", async () => {
  const id = await machine();
  const name = "root-of-the-company";
  const admin = as(createToken(server.tokens, name).token);
  const tenant = as(createToken(server.tokens, "tenant", { apps: ["shop"] }).token);
  await call("POST", `${MACHINES}/${id}/lease`, {}, admin);
  const seen = [
    await call("GET", `${MACHINES}/${id}/lease`, undefined, tenant),
    await call("POST", `${MACHINES}/${id}/lease`, {}, tenant),
    await call("DELETE", `${MACHINES}/${id}/lease?force=true`, undefined, tenant),
    await call("GET", `${MACHINES}/${id}/events`, undefined, tenant),
  ];
  expect(seen.map(({ status }) => status)).toEqual([200, 409, 200, 200]);
  expect(JSON.stringify([seen, server.world.store.outbox.before(Number.MAX_SAFE_INTEGER, {}, 1000)])).not.toContain(
    name,
  );
});

test("an update whose image takes long is refused if another client has taken a lease by then", async () => {
  const id = await machine();
  const { images } = server.world;
  const arrived = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const hold = images.hold.bind(images);
  images.hold = async (...args) => {
    asked.resolve();
    await arrived.promise;
    return hold(...args);
  };
  const updated = call("POST", `${MACHINES}/${id}`, { config: { image: "app:2" } });
  await asked.promise;
  const { nonce } = (await call("POST", `${MACHINES}/${id}/lease`)).body;
  arrived.resolve();
  expect(await updated).toMatchObject({ status: 409, body: { error: "lease_held" } });
  const own = { config: { image: "app:3" } };
  expect(await call("POST", `${MACHINES}/${id}`, own, withNonce(nonce))).toMatchObject({ status: 200 });
});

test("`lease_ttl` gives a new machine a lease before anyone can reach it", async () => {
  const made = await call("POST", MACHINES, { config: { image: "app:1" }, skip_launch: true, lease_ttl: 30 });
  const { id, nonce } = made.body;
  expect(await call("DELETE", `${MACHINES}/${id}`)).toMatchObject({ status: 409, body: { error: "lease_held" } });
  expect((await call("GET", `${MACHINES}/${id}`)).body).not.toHaveProperty("nonce");
  expect(await call("DELETE", `${MACHINES}/${id}`, undefined, withNonce(nonce))).toMatchObject({ status: 200 });
});

test("a program in the machine, and the platform, are not held back", async () => {
  const id = await machine({ skip_launch: false });
  await call("GET", `${MACHINES}/${id}/wait`);
  await call("POST", `${MACHINES}/${id}/lease`);
  server.platform.machines.suspend("shop", id, { by: "proxy" });
  await call("GET", `${MACHINES}/${id}/wait?state=suspended`);
  server.platform.machines.start("shop", id, { by: "proxy" });
  await call("GET", `${MACHINES}/${id}/wait`);
  server.api.server.once("connection", (socket: object) => local.set(socket, id));
  // A connection of its own: that of the machine.
  const inside = request(`${server.url}${MACHINES}/${id}/suspend`, { method: "POST", agent: false }).end();
  const [reply] = (await once(inside, "response")) as [IncomingMessage];
  reply.resume();
  expect(reply.statusCode).toBe(200);
});

test.each([{ ttl: 0 }, { ttl: 86_401 }, { ttl: 1.5 }, { ttl: "60" }, { description: "x".repeat(201) }, { nonce: "x" }])(
  "a lease of %j is refused",
  async (body) => {
    const id = await machine();
    expect(await call("POST", `${MACHINES}/${id}/lease`, body)).toMatchObject({ status: 400 });
    expect(await call("GET", `${MACHINES}/${id}/lease`)).toMatchObject({ status: 404 });
  },
);
