/** Requests that come to one host's proxy, for machines of another host. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { RawClient, until } from "../http/helpers.ts";
import { APP, noFaults, startHosts, type TestHost } from "./hosts-world.ts";

/** Answers with what it was asked, as JSON. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces).toString("latin1");
    response.setHeader("x-own", "yes");
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.rawHeaders, body }));
  });
}

test("a request at one host wakes a machine that sleeps on another", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((request, response) => response.end(`${request.method} ${request.url}`));
  await b.suspend(id);
  await a.hears(id, "suspended");

  const { status, body, headers } = await a.ask("/hello?x=1");

  expect({ status, body }).toEqual({ status: 200, body: "GET /hello?x=1" });
  expect(headers["hibernaut-wake"]).toMatch(/^resume; dur=\d+$/);
  expect(b.state(id)).toBe("running");
  expect(a.forwarded).toEqual(["b"]);
  expect(a.log.at(-1)).toMatchObject({ status: 200, machineId: id, appName: APP, wake: { kind: "resume" } });
  noFaults(a, b);
});

test("the app cannot tell through which host a request came, and the client neither", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine(echo);
  await a.ready();
  const headers = { "x-request-id": "r-1", te: "trailers", "x-some": "thing", cookie: "a=1; hibernaut_session=secret" };
  const ask = { method: "POST", headers, body: "abc" };
  const [far, near] = [await a.ask("/p?q", ask), await b.ask("/p?q", ask)];
  const seen = ({ body }: { body: string }) => JSON.parse(body) as { headers: string[] };
  const ownPort = (host: TestHost, answer: { body: string }) =>
    JSON.parse(answer.body.replaceAll(`${host.port}`, "PORT"));
  expect(ownPort(a, far)).toEqual(ownPort(b, near));
  expect(seen(far).headers).toContain("Hibernaut-Client-IP");
  expect(seen(far).headers).toContain("a=1");
  const { date: _one, ...ofFar } = far.headers;
  const { date: _two, ...ofNear } = near.headers;
  expect(ofFar).toEqual(ofNear);
  noFaults(a, b);
});

test("a client cannot choose a machine, or pretend to be a host, by the fields that hosts send each other", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(echo);
  await a.ready();
  const wire = JSON.stringify({
    app: APP,
    machine: id,
    id: "x",
    peer: "9.9.9.9",
    client: "9.9.9.9",
    secure: true,
    version: "1.1",
  });
  for (const host of [a, b]) {
    const { body } = await host.ask("/", { headers: { "hibernaut-peer-request": wire } });
    expect(body.toLowerCase()).not.toContain("hibernaut-peer");
    expect(body).not.toContain("9.9.9.9");
  }
  // Not even the hostname leads anywhere with it.
  expect(await a.ask("/", { headers: { host: "other.localhost", "hibernaut-peer-request": wire } })).toMatchObject({
    status: 404,
  });
});

test("an app cannot refuse in a proxy's name", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine((_request, response) => {
    response.setHeader("hibernaut-peer-refused", JSON.stringify({ code: "moved", message: "no" }));
    response.setHeader("hibernaut-wake", "cold; dur=99");
    response.end("mine");
  });
  await a.ready();
  const { status, body, headers } = await a.ask("/");
  expect({ status, body, wake: headers["hibernaut-wake"] }).toEqual({
    status: 200,
    body: "mine",
    wake: "running; dur=0",
  });
  expect(headers["hibernaut-peer-refused"]).toBeUndefined();
});

test("large bodies stream both ways", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine((request, response) => void request.pipe(response));
  await a.ready();
  const body = Buffer.alloc(4 * 1024 * 1024, "hibernaut ");
  const answer = await a.ask("/", { method: "POST", body });
  expect(answer.body === body.toString("latin1")).toBe(true);
});

test("one connection carries one request after the other, for all machines of a host", async () => {
  const [a, b] = await startHosts("a", "b");
  const first = await b.machine((_request, response) => response.end("first"), {
    service: { machine_hostnames: true },
  });
  const second = await b.machine((request, response) => void request.resume().on("end", () => response.end("second")), {
    service: { machine_hostnames: true },
  });
  await Promise.all([a.hears(first.id, "running"), a.hears(second.id, "running")]);
  for (let count = 0; count < 3; count += 1) {
    expect((await a.ask("/", { headers: { "hibernaut-machine": first.id } })).body).toBe("first");
    const named = { headers: { host: `${second.id}.${APP}.localhost` }, method: "POST", body: "x".repeat(100_000) };
    expect((await a.ask("/", named)).body).toBe("second");
  }
  expect(b.peerConnections).toBe(1);
});

test("a WebSocket passes, and counts at the host of its machine until it closes", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(echo, {
    onUpgrade: (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nwelcome ");
      socket.pipe(socket);
    },
  });
  await b.suspend(id);
  await a.hears(id, "suspended");
  const client = new RawClient(connect(a.port, "127.0.0.1"));
  client.send(
    `GET /ws HTTP/1.1\r\nHost: ${APP}.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`,
  );
  await client.sees("welcome ");
  expect(client.text).toMatch(/^HTTP\/1\.1 101 /);
  expect(client.text).toMatch(/Hibernaut-Wake: resume/);
  client.send("ping");
  await client.sees("ping");
  await until(() => b.proxies.load(id) === 1, "the open WebSocket to count");
  client.socket.destroy();
  await until(() => b.proxies.load(id) === 0, "the WebSocket to be over");
  noFaults(a, b);
});

test("a client that leaves while its machine wakes is not waited for", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(echo);
  b.platform.machines.stop(APP, id);
  await a.hears(id, "stopped");
  const release = b.world.holdBoots();
  const client = new RawClient(connect(a.port, "127.0.0.1"));
  client.send(`GET / HTTP/1.1\r\nHost: ${APP}.localhost\r\n\r\n`);
  await until(() => b.held() === 1, "the request to wait at host b");
  expect(a.held()).toBe(0);
  client.socket.destroy();
  await until(() => b.held() === 0, "host b to let go of it");
  release();
});

test("a request at the host that is asked first is not forwarded again", async () => {
  const [a, b, c] = await startHosts("a", "b", "c");
  await c.machine((_request, response) => response.end("c"));
  await Promise.all([a.ready(), b.ready()]);
  expect((await a.ask("/")).body).toBe("c");
  expect((await b.ask("/")).body).toBe("c");
  expect([a.forwarded, b.forwarded, c.forwarded]).toEqual([["c"], ["c"], []]);
});
