/** Apps that speak HTTP/2 without TLS: what passes, and what happens when they or their clients break off. */
import { once } from "node:events";
import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import type { Lease } from "../../src/contract.ts";
import { type App, headApp, parsed, rig, serve, until } from "./helpers.ts";
import { ask, session } from "./http2-client.ts";
import { secured } from "./secured.ts";

type Handler = (stream: ServerHttp2Stream, raw: string[]) => void;

interface Http2App extends App {
  sessions: Set<ServerHttp2Session>;
}

async function http2App(handler: Handler, settings = {}): Promise<Http2App> {
  const server: Http2Server = createServer({ settings });
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (one) => {
    sessions.add(one);
    one.on("close", () => sessions.delete(one)).on("error", () => {});
  });
  server.on("stream", (stream, _headers, _flags, raw: string[]) => {
    stream.on("error", () => {});
    handler(stream, raw);
  });
  return Object.assign(await serve(server as never, 0), { sessions });
}

const http2 = async (_request: unknown, _signal: unknown, lease: (over?: Partial<Lease>) => Lease) =>
  lease({ http2: true });
const inFront = (app: App, limits = {}) => secured(app, limits, { leaseFor: http2 });

const REQUEST = { ":authority": "shop.test", ":path": "/" };

test("heads, bodies, interim responses and trailers pass both ways", async () => {
  let seen: string[] = [];
  const app = await http2App((stream, raw) => {
    seen = raw;
    stream.additionalHeaders({ ":status": 103, link: "</a.css>" });
    stream.respond(
      { ":status": 201, "set-cookie": ["a=1", "b=2"], "hibernaut-wake": "mine" },
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "9" }));
    stream.pipe(stream);
  });
  const { port } = await inFront(app);
  const body = Buffer.alloc(300_000, "0123456789");
  const sent = { ":method": "POST", ":path": "/a?b=c", te: "trailers", cookie: "x=1; y=2", "x-one": "1" };
  const got = await ask(session(port), sent, body);
  expect(got).toMatchObject({ status: 201, interim: [103], trailers: { "x-sum": "9" }, reset: 0, whole: true });
  expect(got.body === body.toString()).toBe(true);
  expect(got.headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "hibernaut-wake": "running; dur=0" });
  const head = new Map(Array.from({ length: seen.length / 2 }, (_, at) => [seen[2 * at], seen[2 * at + 1]]));
  expect(Object.fromEntries(head)).toMatchObject({
    ...{ ":method": "POST", ":path": "/a?b=c", ":scheme": "http", ":authority": "shop.test" },
    ...{
      te: "trailers",
      cookie: "x=1; y=2",
      "x-one": "1",
      "x-forwarded-proto": "https",
      "x-forwarded-for": "127.0.0.1",
    },
    via: "2.0 hibernaut",
  });
  expect([...head.keys()].filter((name) => ["host", "connection", "transfer-encoding"].includes(name ?? ""))).toEqual(
    [],
  );
});

test("a client that speaks HTTP/1.1 gets HTTP/1.1", async () => {
  const app = await http2App((stream) => {
    stream.respond({ ":status": 200, "x-app": "2" });
    stream.pipe(stream);
  });
  const { ask: askText, client } = await rig({ app, leaseFor: http2 });
  const posted = await askText(
    "POST / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  );
  expect(parsed(posted)).toMatchObject({ status: 200, body: "3\r\nabc\r\n0\r\n\r\n" });
  expect(posted).toMatch(/^HTTP\/1.1 200 OK\r\nx-app: 2\r\n/);
  const head = (await client()).send("HEAD / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
  await head.sees("\r\n\r\n");
  head.send("GET / HTTP/1.1\r\nHost: shop.test\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
  expect(await head.ends()).toMatch(/2\r\nhi\r\n0\r\n\r\n$/);
});

test("a field that may occur only once, and occurs twice, fails its own request and nothing else", async () => {
  const app = await http2App((stream) => {
    stream.on("end", () => stream.destroyed || stream.respond({ ":status": 200 }, { endStream: true }));
    stream.resume();
  });
  const { ask: askText } = await rig({ app, leaseFor: http2 });
  const chunked = "Host: shop.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n";
  const trailers = await askText(`POST / HTTP/1.1\r\n${chunked}ETag: a\r\nETag: b\r\n\r\n`);
  expect(parsed(trailers)).toMatchObject({ status: 502 });
  const head = await askText(
    "GET / HTTP/1.1\r\nUser-Agent: a\r\nUser-Agent: b\r\nHost: shop.test\r\nConnection: close\r\n\r\n",
  );
  expect(parsed(head)).toMatchObject({ status: 400, body: expect.stringContaining("cannot carry this request") });
  expect(parsed(await askText("GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n"))).toMatchObject({
    status: 200,
  });
});

test("trailers of an app that repeat such a field cut its response, and nothing else", async () => {
  const app = await headApp((socket) =>
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nETag: a\r\nETag: b\r\n\r\n"),
  );
  const { port } = await secured(app);
  const client = session(port);
  expect(await ask(client)).toMatchObject({ status: 200, whole: false });
  expect(client.destroyed).toBe(false);
});

test("an app that closes its connection while a request is open fails it at once, and gets the next on a new one", async () => {
  const sockets = new Set<Socket>();
  const app = await http2App((stream) => {
    if (sockets.size > 0) return stream.respond({ ":status": 200 }, { endStream: true });
    const { socket } = stream.session as ServerHttp2Session;
    sockets.add(socket);
    // Both ends of the stream are told, as by a process that ends.
    socket.destroySoon();
  });
  const { port } = await inFront(app);
  const client = session(port);
  expect((await ask(client, { ":method": "POST" }, Buffer.from("x"))).status).toBe(502);
  expect((await ask(client)).status).toBe(200);
});

test("an error code with which an app resets a request reaches the client, and nothing looks whole", async () => {
  const CODES = [constants.NGHTTP2_CANCEL, constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR];
  const codes = CODES.values();
  const app = await http2App((stream) => {
    stream.on("wantTrailers", () => {});
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.write("half", () => stream.close(codes.next().value));
  });
  const { port, log } = await inFront(app);
  for (const code of CODES) expect(await ask(session(port))).toMatchObject({ status: 200, reset: code, whole: false });
  expect(log.map(({ error }) => error)).toEqual(Array(3).fill("upstream_broke"));
});

test("a request that the app refuses to look at is sent again on a new connection, a body included once", async () => {
  let refused = 0;
  const app = await http2App((stream, raw) => {
    if (raw.includes("/refused") && refused === 0) {
      refused += 1;
      return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    }
    stream.respond({ ":status": 200 });
    stream.end(`${app.accepted} connections`);
  });
  const { port } = await inFront(app);
  const client = session(port);
  expect((await ask(client)).body).toBe("1 connections");
  expect((await ask(client, { ":method": "POST", ":path": "/refused" })).body).toBe("2 connections");
});

test("an app that says goodbye loses no request", async () => {
  let served = 0;
  const app = await http2App((stream) => {
    served += 1;
    // As servers do that limit how long a connection lives.
    if (served % 5 === 0) stream.session?.close();
    stream.respond({ ":status": 200 });
    stream.end("ok");
  });
  const { port } = await inFront(app);
  const client = session(port);
  for (let round = 0; round < 20; round += 1) {
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask(client)));
    expect(answers.map(({ status, body }) => `${status} ${body}`)).toEqual(Array(5).fill("200 ok"));
  }
  expect(app.accepted).toBeGreaterThan(5);
});

test("a client that leaves cancels the request, without an end that could be taken for whole", async () => {
  const seen: string[] = [];
  const app = await http2App((stream) => {
    stream.on("end", () => seen.push(stream.aborted ? "aborted end" : "end"));
    stream.on("close", () => seen.push(`closed ${stream.rstCode}`));
    stream.resume();
  });
  const { port } = await inFront(app);
  const client = session(port);
  // `close()` of Node's client would end the request first.
  const leave = new AbortController();
  const upload = client.request({ ...REQUEST, ":method": "POST" }, { signal: leave.signal });
  upload.on("error", () => {});
  upload.write("half of it");
  await until(() => app.sessions.size === 1, "the app to be connected");
  leave.abort();
  await until(() => seen.some((one) => one.startsWith("closed")), "the app to notice");
  expect(seen).not.toContain("end");
  expect(seen.at(-1)).toBe(`closed ${constants.NGHTTP2_CANCEL}`);
});

test("one client that does not read holds nobody else up", async () => {
  const large = Buffer.alloc(4 * 1024 * 1024, "x");
  const app = await http2App((stream, raw) => {
    stream.respond({ ":status": 200 });
    stream.end(raw.includes("/large") ? large : "small");
  });
  const { port, proxy } = await inFront(app);
  const slow = session(port).request({ ...REQUEST, ":path": "/large" });
  await once(slow, "response");
  slow.pause();
  const other = session(port);
  for (let at = 0; at < 50; at += 1) expect((await ask(other)).body).toBe("small");
  expect(proxy.stats().machineConnections).toBe(1);
  let bytes = 0;
  slow.on("data", (piece: Buffer) => (bytes += piece.length));
  slow.resume();
  await once(slow, "end");
  expect(bytes).toBe(large.length);
});

test("more requests than the app takes on one connection get another one", async () => {
  const open: ServerHttp2Stream[] = [];
  const app = await http2App((stream) => void open.push(stream), { maxConcurrentStreams: 4 });
  const { port, proxy } = await inFront(app);
  const client = session(port);
  const answers = Array.from({ length: 10 }, () => ask(client));
  await until(() => open.length === 10, "all requests to be with the app");
  expect(proxy.stats().machineConnections).toBe(3);
  for (const stream of open) stream.respond({ ":status": 204 }, { endStream: true });
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(10).fill(204));
});

test("connections to a machine that goes to sleep are closed, and the next request makes a new one", async () => {
  const waiting: ServerHttp2Stream[] = [];
  const app = await http2App((stream, raw) => {
    if (raw.includes("/wait")) return void waiting.push(stream);
    stream.respond({ ":status": 200 });
    stream.end("ok");
  });
  const { port, proxy } = await inFront(app);
  const client = session(port);
  await ask(client);
  proxy.forget("m1");
  await until(() => app.sessions.size === 0, "the idle connection to be closed");
  const open = ask(client, { ":path": "/wait" });
  await until(() => waiting.length === 1, "the request to be with the app");
  // A machine that is stopped lets its open requests end.
  proxy.forget("m1");
  expect((await ask(client)).body).toBe("ok");
  expect(app.accepted).toBe(3);
  waiting[0]?.respond({ ":status": 200 });
  waiting[0]?.end("late");
  expect((await open).body).toBe("late");
  await until(() => app.sessions.size === 1, "the connection of the last one to be closed");
});

test("a guest that ends with requests fails those at once that cannot be repeated", async () => {
  const waiting: ServerHttp2Stream[] = [];
  const app = await http2App((stream) => void waiting.push(stream));
  const { port, proxy, log } = await inFront(app);
  const posted = ask(session(port), { ":method": "POST" }, Buffer.from("pay"));
  await until(() => waiting.length === 1, "the request to be with the app");
  proxy.forget("m1", true);
  expect(await posted).toMatchObject({ status: 502, body: expect.stringContaining("The machine ended") });
  expect(log).toMatchObject([{ error: "upstream_closed" }]);
});
