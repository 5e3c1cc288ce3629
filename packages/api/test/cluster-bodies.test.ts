/** Requests through the wrong host whose headers and bodies are unusual, or meant to deceive. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createToken } from "../src/tokens.ts";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;
/** A running machine of app shop on host b. */
let id: string;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b] = cluster.hosts;
  await cluster.ask(a, "POST", "/v1/apps", { app_name: "shop" });
  id = await cluster.make(b, "shop", "web");
});
afterAll(() => cluster.close());

/** Sends bytes to host a, and resolves with what it replies until it closes the connection. */
async function send(bytes: string): Promise<string> {
  const { hostname, port } = new URL(a.url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return text(socket);
}

/** A token that may only read, and only app shop. */
async function reader(): Promise<string> {
  const { token } = await a.host.shared.write(({ tokens }) =>
    createToken(tokens, `reader-${Math.random()}`, { scopes: ["read"], apps: ["shop"] }),
  );
  for (const { host } of cluster.hosts) await host.shared.catchUp();
  return token;
}

test("what is behind the head of a request is never a request of its own", async () => {
  const token = await reader();
  const admin = a.world.store.tokens.list().find(({ name }) => name === "all");
  const head = (verb: string, target: string, length: number) =>
    `${verb} ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`;
  const hidden = `${"\r\n".repeat(200)}GET /v1/tokens HTTP/1.1\r\nHost: x\r\nHibernaut-Peer-Token: ${admin?.id}\r\n\r\n`;
  await send(head("GET", "/v1/apps/shop/logs", 400) + "x".repeat(400));
  const seen = await send(head("GET", `/v1/apps/shop/machines/${id}`, hidden.length) + hidden);
  expect(seen).toMatch(/^HTTP\/1\.1 200 /);
  expect(seen).toContain(`"id":"${id}"`);
  expect(seen).not.toContain('"name":"all"');
});

test("an app is deleted also by a client that sends an empty object along", async () => {
  await cluster.ask(a, "POST", "/v1/apps", { app_name: "gone" });
  expect(await cluster.ask(a, "DELETE", "/v1/apps/gone", {})).toMatchObject({ status: 200 });
  for (const { host, world } of cluster.hosts) {
    await host.shared.catchUp();
    expect(world.store.apps.get("gone")).toBeUndefined();
  }
});

test("a body of unknown length gets there as it is", async () => {
  const body = '{"timeout": "nonsense"}';
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const head = (token: string) =>
    `POST /v1/apps/shop/machines/${id}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
  const reply = await send(head(cluster.token) + chunked);
  expect(reply).toMatch(/^HTTP\/1\.1 400 /);
  expect(reply).toContain("invalid_argument");
});
