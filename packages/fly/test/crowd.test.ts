/** A client that asks for more than its share of what the port carries out at once, and others who ask meanwhile. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { createToken } from "../../api/src/tokens.ts";
import { askFrom } from "../../platform/test/helpers/slow-client.ts";
import { startFly } from "./helpers.ts";

/** Of which a client that is alone gets half. */
const REQUESTS = 6;
const [CROWD, OTHER] = ["127.0.0.1", "127.0.0.2"];

async function shop() {
  const { call, url, platform } = await startFly({ requests: REQUESTS });
  await call("POST", "/v1/apps", { app_name: "shop" });
  const { body } = await call<{ id: string }>("POST", "/v1/apps/shop/machines", { config: { image: "app:1" } });
  const headers = { authorization: `Bearer ${platform.token}` };
  const machine = `${url}/v1/apps/shop/machines/${body.id}`;
  return { platform, machine, headers };
}

test("one client's waits leave places for others, and end with their connections", async () => {
  const { platform, machine, headers } = await shop();
  const others = { authorization: `Bearer ${createToken(platform.tokens, "other").token}` };
  const ask = (from: string, path = "") =>
    askFrom(from, `${machine}${path}`, { headers: from === OTHER ? others : headers });
  const waits = Array.from({ length: REQUESTS / 2 }, () => ask(CROWD, "/wait?state=destroyed&timeout=60"));
  await vi.waitFor(() => expect(platform.open.waits).toBe(REQUESTS / 2));

  const refused = await ask(CROWD).answer;
  expect(refused).toMatchObject({ status: 429, headers: { "retry-after": "1", "fly-request-id": expect.any(String) } });
  expect(JSON.parse(refused.body)).toMatchObject({
    error: expect.stringMatching(/^resource_exhausted: Too many requests of this token/),
    status: "unknown",
  });
  expect(await ask(OTHER).answer).toMatchObject({ status: 200 });

  for (const wait of waits) wait.leave();
  await vi.waitFor(async () => expect(await ask(CROWD).answer).toMatchObject({ status: 200 }));
  await vi.waitFor(() => expect(platform.open.waits).toBe(0));
});

test("a connection has one request under way, however many it sends", async () => {
  const { platform, machine, headers } = await shop();
  const { port, pathname } = new URL(machine);
  const request = (path: string, how: string) =>
    `GET ${pathname}${path} HTTP/1.1\r\nhost: a\r\nauthorization: ${headers.authorization}\r\nconnection: ${how}\r\n\r\n`;
  const socket = connect(Number(port), CROWD);
  await once(socket, "connect");
  socket.write(request("/wait?state=destroyed&timeout=1", "keep-alive").repeat(2) + request("", "close"));
  await vi.waitFor(() => expect(platform.open.waits).toBe(1));
  const statuses = [...(await text(socket)).matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status);
  expect(statuses).toEqual(["408", "429", "429"]);
  expect(await askFrom(CROWD, machine, { headers }).answer).toMatchObject({ status: 200 });
});

test("a token beyond its rate is told when to come back", async () => {
  const { call } = await startFly({}, { rates: { reads: 1, changes: 0, execs: 0 } });
  expect(await call("GET", "/v1/apps")).toMatchObject({ status: 200 });
  const { status, headers } = await call("GET", "/v1/apps");
  expect(status).toBe(429);
  // The rest of a minute.
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(1);
});
