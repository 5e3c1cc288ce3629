import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { temporaryFolder } from "../../store/test/helpers.ts";
import { acceptPlain } from "../src/tls.ts";
import { startApi } from "./helpers.ts";

/** An authority, and a certificate for 127.0.0.1 that it signed. */
function certificates() {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...ec, "-days", "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.crt");
  writeFileSync(at("san"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
  const make = (name: string) => {
    openssl("req", ...ec, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
    const sign = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san"];
    openssl("x509", "-req", "-in", `${name}.csr`, ...sign, "-out", `${name}.crt`);
  };
  make("one");
  make("two");
  return { at, ca: at("ca.crt") };
}

/** One request over a connection of its own. `name` is that of the server's certificate. */
async function exchange(url: string, { body, ...options }: RequestOptions & { body?: object }) {
  const sent = request(url, { agent: false, ...options }).end(body && JSON.stringify(body));
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  const { subject } = (reply.socket as TLSSocket).getPeerCertificate();
  await once(reply.resume(), "end");
  return { status: reply.statusCode, cookie: reply.headers["set-cookie"]?.[0] ?? "", name: subject.CN };
}

async function tlsApi(clientCa?: string) {
  const { at, ca } = certificates();
  copyFileSync(at("one.crt"), at("api.crt"));
  copyFileSync(at("one.key"), at("api.key"));
  const tls = { cert: at("api.crt"), key: at("api.key"), ...(clientCa && { clientCa: ca }) };
  const server = await startApi({ tls });
  onTestFinished(() => server.close());
  const pem = (name: string) => readFileSync(at(name));
  return { server, at, pem, health: (options: RequestOptions) => exchange(`${server.url}/v1/health`, options) };
}

test("the API is served over TLS, and adopts a new certificate without a restart", { timeout: 30_000 }, async () => {
  const { server, at, pem, health } = await tlsApi();
  expect(server.url).toMatch(/^https:/);
  const ca = pem("ca.crt");
  expect(await health({ ca })).toMatchObject({ status: 200, name: "one" });
  // A half-written pair changes nothing.
  writeFileSync(at("api.crt"), "no certificate");
  await vi.waitFor(() => expect(server.logged.length).toBeGreaterThan(0), { timeout: 10_000 });
  expect(await health({ ca })).toMatchObject({ name: "one" });
  server.logged.length = 0;
  copyFileSync(at("two.key"), at("api.key"));
  copyFileSync(at("two.crt"), at("api.crt"));
  await vi.waitFor(async () => expect(await health({ ca })).toMatchObject({ name: "two" }), {
    timeout: 10_000,
  });
});

test("with an authority for clients, someone without its certificate is disconnected", async () => {
  const { pem, health } = await tlsApi("with");
  const ca = pem("ca.crt");
  await expect(health({ ca })).rejects.toThrow();
  expect(await health({ ca, cert: pem("two.crt"), key: pem("two.key") })).toMatchObject({ status: 200 });
});

test("a program in a machine reaches its local API as before, without TLS, token or certificate", async () => {
  const { at } = certificates();
  const local = new WeakMap<object, string>();
  const tls = { cert: at("one.crt"), key: at("one.key"), clientCa: at("ca.crt") };
  const server = await startApi({ tls, local });
  onTestFinished(() => server.close());
  const { platform } = server;
  platform.apps.create("shop");
  const { record } = await platform.machines.create("shop", { config: { image: "x" }, skipLaunch: true });
  // The agent's channel, as far as the API can tell.
  const guest = createServer((connection) => {
    local.set(connection, record.id);
    acceptPlain(server.api, connection);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void guest.close());
  await once(guest, "listening");
  const { port } = guest.address() as AddressInfo;
  const reply = await fetch(`http://127.0.0.1:${port}/v1/apps/shop/machines/${record.id}`);
  expect(await reply.json()).toMatchObject({ id: record.id });
  expect((await fetch(`http://127.0.0.1:${port}/v1/apps`)).status).toBe(403);
});

test("over TLS, the cookie of a session is for this server alone, and only its pages over TLS may act with it", async () => {
  const { server, pem } = await tlsApi();
  const ca = pem("ca.crt");
  const send = (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const type = body && { "content-type": "application/json" };
    return exchange(server.url + path, { method, ca, headers: { ...type, ...headers }, ...(body && { body }) });
  };
  const origin = server.url;
  const signedIn = await send("POST", "/v1/session", { origin }, { token: server.token });
  expect(signedIn).toMatchObject({
    status: 201,
    cookie: expect.stringMatching(/^__Host-hibernaut_session=.*; Secure$/),
  });
  const [cookie = ""] = signedIn.cookie.split(";");
  expect((await send("GET", "/v1/apps", { cookie })).status).toBe(200);
  // A cookie that another host of the domain could have planted.
  expect((await send("GET", "/v1/apps", { cookie: cookie.replace("__Host-", "") })).status).toBe(401);
  const create = (from: string) => send("POST", "/v1/apps", { cookie, origin: from }, { app_name: "shop" });
  expect((await create(origin.replace("https", "http"))).status).toBe(403);
  expect((await create(origin)).status).toBe(201);
});

test("old versions of TLS are refused", async () => {
  const { server, pem } = await tlsApi();
  const port = Number(new URL(server.url).port);
  const old = new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ca: pem("ca.crt"), maxVersion: "TLSv1.1", minVersion: "TLSv1" });
    socket.once("secureConnect", resolve).once("error", reject);
  });
  await expect(old).rejects.toThrow();
});

test("a certificate that does not fit its key is refused at the start, with both files named", async () => {
  const { at } = certificates();
  await expect(startApi({ tls: { cert: at("one.crt"), key: at("two.key") } })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("two.key"),
  });
});

test("every reply tells browsers to keep and embed nothing; pages of other origins get nothing", async () => {
  const server = await startApi({ corsOrigins: ["https://console.example.com"] });
  onTestFinished(() => server.close());
  const ask = (origin: string, init: RequestInit = {}) =>
    fetch(`${server.url}/v1/apps`, { ...init, headers: { origin, authorization: `Bearer ${server.token}` } });
  const own = await ask("https://console.example.com");
  expect(own.headers.get("access-control-allow-origin")).toBe("https://console.example.com");
  expect(Object.fromEntries(own.headers)).toMatchObject({
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  for (const origin of [
    "https://console.example.com.evil.org",
    "https://example.com",
    "null",
    "http://console.example.com",
  ])
    for (const reply of [await ask(origin), await ask(origin, { method: "OPTIONS" })])
      expect(reply.headers.get("access-control-allow-origin"), origin).toBeNull();
  const preflight = await ask("https://console.example.com", { method: "OPTIONS" });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("authorization");
});

test("without the setting, no page of any origin may use the API", async () => {
  const server = await startApi();
  onTestFinished(() => server.close());
  const headers = { origin: "https://console.example.com" };
  const preflight = await fetch(`${server.url}/v1/apps`, { method: "OPTIONS", headers });
  expect(preflight.status).toBe(404);
  expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
});
