/** A client that does not wait for replies. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { testApi } from "./helpers.ts";

test("a connection has one request under way, however many it sends", async () => {
  const { server, call } = await testApi();
  const { body } = await call("POST", "/v1/apps/shop/machines", { config: { image: "app:1" } });
  const path = `/v1/apps/shop/machines/${body.id}`;
  const { port, hostname } = new URL(server.url);
  const request = (rest: string, how: string) =>
    `GET ${path}${rest} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.token}\r\nconnection: ${how}\r\n\r\n`;
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(request("/wait?state=destroyed&timeout=1", "keep-alive").repeat(2) + request("", "close"));
  const replies = await text(socket);
  expect([...replies.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).toEqual(["408", "429", "429"]);
  expect(replies).toMatch(/retry-after: 1\r\n/);
  // The next connection of the same client is served.
  expect(await call("GET", path)).toMatchObject({ status: 200 });
});
