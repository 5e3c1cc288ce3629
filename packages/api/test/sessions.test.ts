/** Signing in from a browser, over HTTP. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { MAX_FAILED } from "../src/attempts.ts";
import { SESSION_IDLE_MS, SESSIONS_PER_TOKEN, Sessions } from "../src/sessions.ts";
import { createToken, revokeToken, rotateToken } from "../src/tokens.ts";
import { startApi, type TestApi } from "./helpers.ts";

let server: TestApi;
beforeEach(async () => {
  server = await startApi();
  onTestFinished(() => server.close());
});

const post = (path: string, body?: object, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: "POST",
    headers: { ...(body && { "content-type": "application/json" }), ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
const own = () => ({ origin: server.url });

/** Signs in and returns what the browser sends from then on. */
async function signIn(token = server.token): Promise<{ cookie: string }> {
  const reply = await post("/v1/session", { token }, own());
  expect(reply.status).toBe(201);
  const [cookie = ""] = (reply.headers.get("set-cookie") ?? "").split(";");
  return { cookie };
}

const get = (path: string, headers: Record<string, string>) => fetch(server.url + path, { headers });

test("a token is exchanged for a cookie, with which the API answers like with the token", async () => {
  const reply = await post("/v1/session", { token: server.token }, own());
  expect(reply.status).toBe(201);
  expect(reply.headers.get("set-cookie")).toMatch(
    /^hibernaut_session=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43\d{3}$/,
  );
  const body = await reply.text();
  expect(body).not.toContain(server.token);
  expect(JSON.parse(body)).toMatchObject({ token: { name: "test" }, scopes: ["admin"], apps: null });
  const cookie = (reply.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  expect(await (await get("/v1/session", { cookie })).json()).toEqual(JSON.parse(body));
  expect((await get("/v1/apps", { cookie })).status).toBe(200);
  const made = await post("/v1/apps", { app_name: "shop" }, { cookie, ...own() });
  expect(made.status).toBe(201);
  // Neither of the two secrets is stored.
  const stored = readFileSync(join(server.world.folder, "hibernaut.db-wal")).toString("latin1");
  expect(stored).not.toContain(cookie.split("=")[1]);
  expect(stored).not.toContain(server.token.slice(4));
});

test("behind something that ends TLS, the cookie stays on TLS when it is made, renewed and ended", async () => {
  const page = { origin: server.url.replace("http:", "https:") };
  const reply = await post("/v1/session", { token: server.token }, page);
  const made = reply.headers.get("set-cookie") ?? "";
  expect(made).toMatch(/^__Host-hibernaut_session=[\w-]{43}; .*; Secure$/);
  const [cookie = ""] = made.split(";");
  // As if the last use was some minutes ago.
  const hash = createHash("sha256")
    .update(cookie.split("=")[1] ?? "")
    .digest("hex");
  server.world.store.sessions.use(hash, Date.now() - 300_000);
  const renewed = await get("/v1/session", { cookie });
  expect(renewed.status).toBe(200);
  expect(renewed.headers.get("set-cookie")).toMatch(/^__Host-hibernaut_session=[\w-]{43}; .*; Secure$/);
  const end = () => fetch(`${server.url}/v1/session`, { method: "DELETE", headers: { cookie, ...page } });
  for (const status of [200, 401]) {
    const ended = await end();
    expect(ended.status).toBe(status);
    expect(ended.headers.get("set-cookie")).toMatch(/^__Host-hibernaut_session=; .*Max-Age=0; Secure$/);
  }
});

test("a session has the scopes and apps of its token", async () => {
  server.platform.apps.create("shop");
  server.platform.apps.create("bank");
  const { token } = createToken(server.tokens, "reader", { scopes: ["read"], apps: ["shop"] });
  const headers = { ...(await signIn(token)), ...own() };
  expect((await get("/v1/apps/shop", headers)).status).toBe(200);
  expect((await get("/v1/apps/bank", headers)).status).toBe(404);
  expect((await post("/v1/apps/shop/machines", { config: { image: "x" } }, headers)).status).toBe(403);
  expect((await get("/v1/tokens", headers)).status).toBe(403);
});

test("a page of another site cannot read with the cookie that browsers send along, nor sign anyone in", async () => {
  const evil = { origin: "https://evil.example.com" };
  const refused = await get("/v1/apps", { ...(await signIn()), ...evil });
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({
    error: "permission_denied",
    message: expect.stringContaining("page"),
  });
  expect((await post("/v1/session", { token: server.token }, evil)).status).toBe(403);
});

test("no page of another server opens a WebSocket with the cookie", async () => {
  const session = await signIn();
  server.platform.apps.create("shop");
  const { record } = await server.platform.machines.create("shop", { config: { image: "x" } });
  await server.platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 10_000 });
  const url = `${server.url.replace("http", "ws")}/v1/apps/shop/machines/${record.id}/exec?command=id`;
  const refusal = async (headers: Record<string, string>) => {
    const socket = new WebSocket(url, { headers });
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    return response.statusCode;
  };
  expect(await refusal(session)).toBe(403);
  expect(await refusal({ ...session, origin: "https://evil.example.com" })).toBe(403);
  expect(await refusal({ ...own() })).toBe(401);
  const socket = new WebSocket(url, { headers: { ...session, ...own() } });
  await once(socket, "open");
  socket.terminate();
});

test("a program that shows a token means that one, whatever cookie comes along", async () => {
  const session = await signIn();
  const { token } = createToken(server.tokens, "reader", { scopes: ["read"] });
  const headers = { ...session, authorization: `Bearer ${token}` };
  expect(await (await get("/v1/session", headers)).json()).toMatchObject({
    token: { name: "reader" },
    expires_at: null,
  });
  expect((await post("/v1/apps", { app_name: "shop" }, headers)).status).toBe(403);
  expect((await get("/v1/apps", { ...session, authorization: "Bearer wrong" })).status).toBe(401);
  // With a token, no page has to be named.
  const change = await post("/v1/apps", { app_name: "shop" }, { ...session, authorization: `Bearer ${server.token}` });
  expect(change.status).toBe(201);
});

describe("a session ends", () => {
  test("when someone signs out", async () => {
    const session = await signIn();
    const other = await signIn();
    const out = await fetch(`${server.url}/v1/session`, { method: "DELETE", headers: { ...session, ...own() } });
    expect(await out.json()).toEqual({ ok: true });
    expect(out.headers.get("set-cookie")).toMatch(/^hibernaut_session=; .*Max-Age=0$/);
    const dead = await get("/v1/session", session);
    expect(dead.status).toBe(401);
    expect(dead.headers.get("set-cookie")).toContain("Max-Age=0");
    expect((await get("/v1/session", other)).status).toBe(200);
  });

  test("at once when its token is revoked", async () => {
    const { token, record } = createToken(server.tokens, "visitor");
    const session = await signIn(token);
    revokeToken(server.tokens, record.id);
    expect(await (await get("/v1/apps", session)).json()).toMatchObject({ error: "unauthenticated" });
    expect((await get("/v1/session", await signIn())).status).toBe(200);
  });

  test("with its token when that was rotated, and not before", async () => {
    const { token, record } = createToken(server.tokens, "visitor");
    const session = await signIn(token);
    const { old } = rotateToken(server.tokens, record.id, { overlapMs: 60_000 });
    const reply = await get("/v1/session", session);
    expect(await reply.json()).toMatchObject({ expires_at: old.validUntil });
    const { sessions, tokens } = server.world.store;
    const later = new Sessions({ sessions, tokens, onFault: fail, now: () => Date.parse(old.validUntil) });
    expect(later.find(session.cookie.split("=")[1] ?? "")).toBeUndefined();
  });

  test("when it was not used for half a day, and not while it is used; after 30 days in any case", () => {
    let now = Date.now();
    const { sessions, tokens } = server.world.store;
    const clock = new Sessions({ sessions, tokens, onFault: fail, now: () => now });
    const [token] = tokens.list();
    if (token === undefined) throw new Error("there is no token");
    const { secret, record } = clock.begin(token);
    const idle = clock.begin(token);
    // Half an hour before its end, again and again.
    const step = SESSION_IDLE_MS - 1_800_000;
    let uses = 0;
    for (let found = clock.find(secret); found !== undefined; found = clock.find(secret)) {
      clock.use(found);
      uses += 1;
      now += step;
    }
    const days = (now - record.createdAt) / 86_400_000;
    expect(uses).toBeGreaterThan(50);
    expect(days).toBeGreaterThanOrEqual(30);
    expect(days).toBeLessThan(31);
    expect(clock.find(idle.secret)).toBeUndefined();
  });
});

test("a use renews the cookie, once a minute at most, and a store that cannot be written ends no session", () => {
  let now = Date.now();
  const { sessions, tokens } = server.world.store;
  const faults: unknown[] = [];
  const broken = { value: false };
  const fragile = {
    ...sessions,
    use(hash: string, at: number) {
      if (broken.value) throw new Error("the disk is full");
      sessions.use(hash, at);
    },
  };
  const clock = new Sessions({ sessions: fragile, tokens, onFault: (error) => faults.push(error), now: () => now });
  const [token] = tokens.list();
  if (token === undefined) throw new Error("there is no token");
  const begun = clock.begin(token);
  expect(clock.use(begun)).toBeUndefined();
  now += 60_000;
  expect(clock.use(begun)).toMatchObject({ endsAt: begun.endsAt + 60_000 });
  now += 60_000;
  broken.value = true;
  const found = clock.find(begun.secret);
  expect(found && clock.use(found)).toBeUndefined();
  expect(faults).toHaveLength(1);
  expect(clock.find(begun.secret)).toBeDefined();
});

test("a token has up to 20 sessions; the one that was not used for longest goes", async () => {
  const first = await signIn();
  const { record, token } = createToken(server.tokens, "other");
  const other = await signIn(token);
  for (let count = 0; count < SESSIONS_PER_TOKEN; count += 1) await signIn();
  expect((await get("/v1/session", first)).status).toBe(401);
  expect(await (await get("/v1/session", other)).json()).toMatchObject({ token: { id: record.id } });
});

test("all tokens together have up to a limit of sessions", () => {
  const { sessions, tokens } = server.world.store;
  const [token] = tokens.list();
  const limits = { usedSince: 0, perToken: 100, overall: 3 };
  for (const hash of ["a", "b", "c", "d"])
    sessions.insert({ hash, tokenId: token?.id ?? "", createdAt: 1, usedAt: 1 }, limits);
  expect(["a", "b", "c", "d"].filter((hash) => sessions.find(hash) !== undefined)).toEqual(["b", "c", "d"]);
});

test("someone who guesses tokens has to wait, and nothing tells a revoked token from a wrong one", async () => {
  const { record, token } = createToken(server.tokens, "gone");
  revokeToken(server.tokens, record.id);
  const messages = new Set<string>();
  for (let count = 0; count < MAX_FAILED; count += 1) {
    const refused = await post("/v1/session", { token: count % 2 === 0 ? token : `hib_${count}` });
    expect(refused.status).toBe(401);
    messages.add(((await refused.json()) as { message: string }).message);
  }
  expect(messages.size).toBe(1);
  const late = await post("/v1/session", { token: "hib_late" });
  expect(late.status).toBe(429);
  expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await late.json()).toMatchObject({ error: "resource_exhausted", details: { per: "sign_ins" } });
  // Who has a valid token does not notice, even behind the same address.
  await signIn();
  expect((await get("/v1/apps", { authorization: `Bearer ${server.token}` })).status).toBe(200);
});

test("the audit log says who signed in, and what they changed from a browser", async () => {
  const session = await signIn();
  await post("/v1/apps", { app_name: "shop" }, { ...session, ...own() });
  const lines = await (await get("/v1/audit", { authorization: `Bearer ${server.token}` })).text();
  const entries = lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(entries).toMatchObject([
    { phase: "begin", route: "/v1/session", method: "POST", token: { name: "test" } },
    { phase: "end", route: "/v1/session", status: 201 },
    { phase: "begin", route: "/v1/apps", session: true, token: { name: "test" } },
    { phase: "end", route: "/v1/apps", session: true, status: 201 },
  ]);
  expect(lines).not.toContain(server.token);
  expect(lines).not.toContain(session.cookie.split("=")[1]);
});

test("a session survives a restart of the platform", async () => {
  const session = await signIn();
  const { sessions, tokens } = server.world.store;
  const next = await startApi({ sessions, tokens });
  onTestFinished(() => next.close());
  expect((await fetch(`${next.url}/v1/session`, { headers: session })).status).toBe(200);
});

function fail(error: unknown): never {
  throw error;
}
