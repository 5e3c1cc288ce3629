/** Clients that trickle their bodies, and those that may take their time. */
import { type AddressInfo, connect } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { limitBodies } from "../src/body-deadline.ts";
import type { Api } from "../src/deps.ts";

const DEADLINE_MS = 100;

let app: Api;
let port: number;
beforeEach(async () => {
  app = fastify({ requestTimeout: 0, forceCloseConnections: true });
  limitBodies(app, DEADLINE_MS);
  app.addContentTypeParser("application/x-tar", (_request, payload, done) => done(null, payload));
  app.post("/json", async () => ({ ok: true }));
  app.post("/tar", { config: { streamsBody: true } }, async ({ body }) => text(body as Readable));
  await app.listen({ port: 0, host: "127.0.0.1" });
  ({ port } = app.server.address() as AddressInfo);
});
afterEach(() => app.close());

/** Sends the first half of a body. */
function begin(path: string, type: string) {
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: ${type}\r\ncontent-length: 4\r\n\r\n{ `,
  );
  return socket;
}

test("a body that does not arrive in time ends its connection, and the reply says why", async () => {
  const socket = begin("/json", "application/json");
  expect(await text(socket)).toMatch(/^HTTP\/1.1 408 [^]*did not arrive in time/);
});

test("an archive may take longer, and so may the work on a body that arrived", async () => {
  const archive = begin("/tar", "application/x-tar");
  // The other request's deadline is later than the archive's would be.
  await text(begin("/json", "application/json"));
  archive.write(" }");
  expect(await text(archive)).toMatch(/^HTTP\/1.1 200 [^]*\{ {2}\}$/);
});

test("a request from within the process, which has no socket, may be answered late", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const other = fastify();
  limitBodies(other, DEADLINE_MS);
  other.get("/wait", () => released.then(() => ({ ok: true })));
  const answer = other.inject({ url: "/wait" });
  // Its deadline is later.
  await text(begin("/json", "application/json"));
  release();
  expect((await answer).json()).toEqual({ ok: true });
});
