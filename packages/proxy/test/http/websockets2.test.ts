/** WebSockets over HTTP/2 (RFC 8441), with Node's client against a real WebSocket server and against apps that misbehave. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { openBrowser } from "../../../platform/test/helpers/browser.ts";
import { type App, headApp, serve, until } from "./helpers.ts";
import { session as connected } from "./http2-client.ts";
import { secured } from "./secured.ts";

/** A server that sends back what it gets, with its own name in front, and remembers its last request. */
async function echo(): Promise<App & { sockets: WebSocketServer; heads: Record<string, unknown>[] }> {
  const server = createServer((_request, response) => void response.writeHead(426).end());
  const sockets = new WebSocketServer({ server, handleProtocols: () => "chat" });
  const heads: Record<string, unknown>[] = [];
  sockets.on("connection", (socket, request) => {
    heads.push({ url: request.url, method: request.method, ...request.headers });
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  return Object.assign(await serve(server, 0), { sockets, heads });
}

async function session(port: number): Promise<ClientHttp2Session> {
  const client = connected(port);
  await once(client, "remoteSettings");
  return client;
}

const OPEN = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":authority": "shop.test" };
const VERSION = { "sec-websocket-version": "13" };

interface Opened {
  stream: ClientHttp2Stream;
  headers: Record<string, unknown>;
}

async function open(client: ClientHttp2Session, more: Record<string, string> = {}): Promise<Opened> {
  const stream = client.request({ ...OPEN, ":path": "/chat?room=1", ...VERSION, ...more }, { endStream: false });
  stream.on("error", () => {});
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  return { stream, headers };
}

/** One masked frame, as a client sends it (RFC 6455 5.2). */
function frame(payload: Buffer, opcode: number): Buffer {
  const mask = Buffer.from([1, 2, 3, 4]);
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([0x80 | 127, 0, 0, 0, 0, ...lengthBytes(payload.length)]);
  const masked = Buffer.from(payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
  return Buffer.concat([Buffer.from([0x80 | opcode]), length, mask, masked]);
}

function lengthBytes(length: number): number[] {
  return [length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255];
}

/** Collects what the stream brings. */
function collect(stream: ClientHttp2Stream): { bytes: Buffer } {
  const got = { bytes: Buffer.alloc(0) };
  stream.on("data", (piece: Buffer) => (got.bytes = Buffer.concat([got.bytes, piece])));
  return got;
}

const [TEXT, CLOSE] = [1, 8];

test("the proxy offers them, and translates one for an app that only knows HTTP/1.1", async () => {
  const app = await echo();
  const { port, log, outcomes } = await secured(app);
  const client = await session(port);
  expect(client.remoteSettings.enableConnectProtocol).toBe(true);
  const { stream, headers } = await open(client, { "sec-websocket-protocol": "chat", origin: "https://shop.test" });
  expect(headers).toMatchObject({ ":status": 200, "sec-websocket-protocol": "chat" });
  expect(headers).toHaveProperty("hibernaut-wake");
  expect(headers).not.toHaveProperty("sec-websocket-accept");
  expect(app.heads).toMatchObject([
    { url: "/chat?room=1", method: "GET", host: "shop.test", upgrade: "websocket", origin: "https://shop.test" },
  ]);
  const got = collect(stream);
  stream.write(frame(Buffer.from("hello"), TEXT));
  await until(() => got.bytes.length >= 7, "the echo");
  expect(got.bytes).toEqual(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from("hello")]));
  stream.write(frame(Buffer.from([0x03, 0xe8]), CLOSE));
  await once(stream, "end");
  stream.end();
  await until(() => outcomes.length === 1, "the lease to be back");
  expect(log).toMatchObject([
    { method: "GET", target: "/chat?room=1", httpVersion: "2.0", status: 200, error: undefined },
  ]);
  expect(outcomes).toEqual([{ status: 200, error: undefined }]);
});

test("many pass a megabyte each at once over one connection, next to ordinary requests", async () => {
  const { port, log } = await secured(await echo());
  const client = await session(port);
  const payload = Buffer.alloc(1024 * 1024, "0123456789abcdef");
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      const { stream } = await open(client);
      const got = collect(stream);
      stream.write(frame(payload, 2));
      await until(() => got.bytes.length >= payload.length + 10, "the whole echo");
      expect(got.bytes.subarray(10).equals(payload)).toBe(true);
      stream.end();
      await once(stream, "close");
    }),
  );
  const ordinary = client.request({ ":path": "/", ":authority": "shop.test" });
  const [headers] = (await once(ordinary, "response")) as [Record<string, unknown>];
  expect(headers[":status"]).toBe(426);
  ordinary.resume();
  await once(ordinary, "close");
  await until(() => log.length === 6, "all requests to end");
});

test("an upgraded stream counts as one, and what its client sends counts as wanted", async () => {
  const [calls, app] = [[] as string[], await echo()];
  const { port } = await secured(
    app,
    {},
    {
      leaseFor: async (_request, _signal, lease) =>
        lease({ upgraded: () => void calls.push("upgraded"), wanted: () => void calls.push("wanted") }),
    },
  );
  const { stream } = await open(await session(port));
  expect(calls).toEqual(["upgraded"]);
  stream.write(frame(Buffer.from("x"), TEXT));
  await until(() => calls.includes("wanted"), "the client's bytes to be noticed");
  stream.close(constants.NGHTTP2_CANCEL);
});

test("a client that resets its stream ends the app's socket, and the other streams stay", async () => {
  const app = await echo();
  const { port, log } = await secured(app);
  const client = await session(port);
  const [first, second] = [await open(client), await open(client)];
  first.stream.close(constants.NGHTTP2_CANCEL);
  await until(() => app.open.size === 1, "the app to lose one socket");
  const got = collect(second.stream);
  second.stream.write(frame(Buffer.from("still"), TEXT));
  await until(() => got.bytes.includes("still"), "the other one's echo");
  expect(log).toMatchObject([{ status: 200, error: "client_gone" }]);
});

test("an app that breaks off resets the stream, which must not look like an end", async () => {
  const app = await echo();
  const { port, log } = await secured(app);
  const { stream } = await open(await session(port));
  let ended = false;
  stream.on("end", () => (ended = true)).resume();
  const closed = new Promise((resolve) => stream.once("close", resolve));
  for (const socket of app.open) socket.resetAndDestroy();
  await closed;
  expect([ended, stream.rstCode]).toEqual([false, constants.NGHTTP2_INTERNAL_ERROR]);
  expect(log).toMatchObject([{ status: 200, error: "upstream_broke" }]);
});

test("a silent one ends after its time, and all end when the proxy closes", async () => {
  const { port, log } = await secured(await echo(), { tunnelMs: 50 });
  const { stream } = await open(await session(port));
  await once(stream.resume(), "close");
  expect(log).toMatchObject([{ status: 200 }]);

  const { port: other, proxy, log: cut } = await secured(await echo());
  const late = await open(await session(other));
  const gone = once(late.stream.resume(), "close");
  await proxy.close(10);
  await gone;
  expect(cut).toMatchObject([{ error: "cut" }]);
});

const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";

test.each([
  ["an answer that is not a switch", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
  ["a switch without the accepted key", `${SWITCH}Upgrade: websocket\r\n\r\n`],
  ["a switch with a wrong key", `${SWITCH}Upgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n`],
  ["a switch to something else", `${SWITCH}Upgrade: chat\r\n\r\n`],
])("%s does not open a WebSocket: 502", async (_what, answer) => {
  const { port, log } = await secured(await headApp((socket) => socket.write(answer)));
  const { stream, headers } = await open(await session(port));
  const got = collect(stream);
  await once(stream, "end");
  expect(headers[":status"]).toBe(502);
  expect(JSON.parse(got.bytes.toString())).toMatchObject({ error: "upstream_invalid" });
  expect(log).toMatchObject([{ status: 502, error: "upstream_invalid" }]);
  stream.close();
});

test("an app's refusal arrives as it is", async () => {
  const refusing = await headApp((socket) => socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno!"));
  const { port } = await secured(refusing);
  const { stream, headers } = await open(await session(port));
  const got = collect(stream);
  await once(stream, "end");
  expect([headers[":status"], got.bytes.toString()]).toEqual([403, "no!"]);
  stream.close();
});

test.each<[string, Record<string, string>, boolean, number]>([
  ["CONNECT without a protocol", { ":method": "CONNECT", ":authority": "shop.test:443" }, false, 405],
  ["CONNECT with another protocol", { ...OPEN, ":protocol": "connect-udp", ":path": "/" }, false, 405],
  ["one that is over at once", { ...OPEN, ":path": "/" }, true, 400],
  ["one with a length", { ...OPEN, ":path": "/", "content-length": "3" }, false, 400],
])("%s is refused", async (_what, headers, endStream, status) => {
  const { port } = await secured(await echo());
  const stream = (await session(port)).request(headers, { endStream });
  stream.on("error", () => {});
  const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(answer[":status"]).toBe(status);
  stream.resume().close();
  await once(stream, "close");
});

test("a browser that already speaks HTTP/2 uses it for its WebSocket", async () => {
  const app = await echo();
  const { port, log } = await secured(app);
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ ignoreHTTPSErrors: true });
    await page.goto(`https://127.0.0.1:${port}/`);
    const said = await page.evaluate(
      (host) =>
        new Promise((resolve, reject) => {
          const socket = new WebSocket(`wss://${host}/chat`, "chat");
          socket.addEventListener("error", () => reject(new Error("no WebSocket")));
          socket.addEventListener("open", () => socket.send("from a browser"));
          socket.addEventListener("message", ({ data }) => socket.close(1000, data as string));
          socket.addEventListener("close", ({ code, reason }) => resolve([code, reason, socket.protocol]));
        }),
      `127.0.0.1:${port}`,
    );
    expect(said).toEqual([1000, "from a browser", "chat"]);
  } finally {
    await browser.close();
  }
  expect(log.find(({ target }) => target === "/chat")).toMatchObject({
    httpVersion: "2.0",
    status: 200,
    error: undefined,
  });
});
