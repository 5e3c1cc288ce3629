/** Requests of machines that something is added to, over real sockets and TLS: what the server gets, and what nobody may do. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, request } from "node:https";
import { connect, createServer as createNetServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { egressOf, withInjected } from "@hibernaut/domain/egress";
import { makeAuthority, makeKey, sign } from "@hibernaut/lib/certificates";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { openAuthority } from "../../src/outward/authority.ts";
import { type GatedMachine, openGate } from "../../src/outward/gate.ts";

const NAME = "api.example.com";
const SECRET = "Bearer the-secret";
/** Nothing is encrypted here: what rules have is what is added. */
const rulesFor = (injected: Record<string, string>) => withInjected(egressOf({}), injected);
const added = (value: string) => JSON.stringify({ authorization: value });

const outside = await makeAuthority("outside", 1);
const { key, publicKey } = makeKey();
const cert = await sign(outside, { name: NAME, names: [NAME], publicKey, days: 1 });

async function listening(server: Server): Promise<{ port: number }> {
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return server.address() as { port: number };
}

const createTlsOf = (serve: (socket: TLSSocket) => void) =>
  createTlsServer({ cert, key, ALPNProtocols: ["http/1.1"] }, (socket) => serve(socket.on("error", () => {})));

/** A server of the name, or what is at the port in its place, and a machine whose connections a gate leads to it. */
async function world({ port: otherPort }: { port?: number } = {}) {
  const seen: { method: string; url: string; rawHeaders: string[]; body: string }[] = [];
  const server = createServer({ cert, key }, (asked, reply) => {
    const answer = (body: string) => {
      seen.push({ method: asked.method ?? "", url: asked.url ?? "", rawHeaders: asked.rawHeaders, body });
      return reply.setHeader("x-answer", "yes").end(`got ${body.length}`);
    };
    text(asked).then(answer, () => reply.destroy());
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void [server.closeAllConnections(), server.close()]);
  await once(server, "listening");
  const port = otherPort ?? (server.address() as { port: number }).port;
  const authority = openAuthority(await tempFolder("authority"));
  const machine: GatedMachine = { id: "m1", app: "shop", address: "127.0.0.1" };
  machine.egress = rulesFor({ [NAME]: added(SECRET) });
  const reached: string[] = [];
  const gate = await openGate({
    ...{ address: "127.0.0.1", outside: { http: 80, tls: 443 }, machineAt: () => machine, onRefused() {} },
    async reach(name) {
      reached.push(name);
      const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
      await once(socket, "connect");
      return socket;
    },
    injection: { authority, unseal: (sealed) => JSON.parse(sealed), authorities: [outside.certificate] },
  });
  onTestFinished(() => gate.close());
  const ca = await authority.certificate();
  const tls = (servername = NAME) => ({ host: "127.0.0.1", port: gate.ports.tls, servername, ca });
  return { server, gate, machine, seen, reached, tls };
}

const ask = async (options: object, body?: string) => {
  const sent = request({ ...options, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) };
};
const headersOf = (raw: readonly string[], name: string) =>
  raw.flatMap((each, at) => (at % 2 === 0 && each.toLowerCase() === name ? [raw[at + 1]] : []));

async function said(options: object, message: string): Promise<string> {
  const socket: TLSSocket = connectTls({ ...options, rejectUnauthorized: true } as never);
  socket.write(message);
  return text(socket).catch(String);
}

test("a request gets what is added to it, in place of what the guest says, and nothing else changes", async () => {
  const { seen, tls } = await world();
  const headers = {
    host: NAME,
    authorization: "Bearer guess",
    "X-Own": "kept",
    connection: "close, x-hop",
    "x-hop": "1",
  };
  const path = "/v1/chat?stream=%2f";
  const answer = await ask({ ...tls(), path, method: "POST", headers }, "x".repeat(300_000));
  expect(answer).toMatchObject({ status: 200, headers: { "x-answer": "yes" }, text: "got 300000" });
  const [{ rawHeaders, ...got } = { rawHeaders: [] }] = seen;
  expect(got).toMatchObject({ method: "POST", url: path });
  expect(headersOf(rawHeaders, "authorization")).toEqual([SECRET]);
  expect(headersOf(rawHeaders, "x-own")).toEqual(["kept"]);
  expect(headersOf(rawHeaders, "x-hop")).toEqual([]);
  expect(headersOf(rawHeaders, "host")).toEqual([NAME]);
});

test("requests of one connection go over one connection, and end with it", async () => {
  const { server, reached, tls } = await world();
  const one = `GET / HTTP/1.1\r\nHost: ${NAME}\r\n`;
  expect((await said(tls(), `${one}\r\n${one}Connection: close\r\n\r\n`)).match(/200 OK/g)).toHaveLength(2);
  expect(reached).toEqual([NAME]);
  await expect.poll(() => new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))).toBe(0);
});

test("a WebSocket begins with what is added, and carries bytes both ways", async () => {
  const { server, tls } = await world();
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, { headers }) =>
    socket.on("message", (data) => socket.send(`${headers.authorization} ${String(data)}`)),
  );
  const { host, port, servername, ca } = tls();
  const options = { servername, ca, headers: { host: NAME } };
  const client = new WebSocket(`wss://${host}:${port}/`, options);
  await once(client, "open");
  client.send("hello");
  expect(String((await once(client, "message"))[0])).toBe(`${SECRET} hello`);
  client.terminate();
});

test("the server of another name gets nothing, wherever the guest aims", async () => {
  const { seen, tls } = await world();
  const send = (target: string, ...headers: string[]) =>
    said(tls(), [`${target} HTTP/1.1`, ...headers, "Connection: close", "", ""].join("\r\n"));
  expect(await send("GET /", "Host: evil.example.org")).toContain(" 421 ");
  expect(await send("GET https://evil.example.org/", `Host: ${NAME}`)).toContain(" 421 ");
  expect(await send("GET /", `Host: ${NAME}`, `Host: ${NAME}`)).toMatch(/ 4\d\d /);
  expect(await send("GET /", `Host: ${NAME}@evil.example.org`)).toContain(" 421 ");
  expect(await send("TRACE /", `Host: ${NAME}`)).toContain(" 405 ");
  expect(await send(`CONNECT ${NAME}:443`, `Host: ${NAME}`)).not.toContain(" 200 ");
  expect(await send("GET /", `Host: ${NAME}`, "Upgrade: h2c", "Connection: Upgrade")).not.toContain(" 101 ");
  expect(seen).toEqual([]);
});

test.each([
  ["GET", ["Connection: content-length, keep-alive", "Content-Length: 4"], "GET "],
  ["POST", ["Connection: Content-Length", "Connection: keep-alive", "Content-Length: 4"], "POST"],
  ["DELETE", ["Connection: transfer-encoding", "Transfer-Encoding: chunked"], "4\r\nGET \r\n0\r\n\r\n"],
  ["PUT", ["Content-Length: 4", "Expect: 100-continue"], "PUT "],
])(
  "the body of a %s with %j is a body for the server, too, and no request follows in it",
  async (method, headers, content) => {
    const { seen, tls } = await world();
    const first = [`${method} /one HTTP/1.1`, `Host: ${NAME}`, ...headers, "", content].join("\r\n");
    await said(tls(), `${first}GET /two HTTP/1.1\r\nHost: ${NAME}\r\nConnection: close, host\r\n\r\n`);
    expect(seen.map(({ method: heard, url, body }) => [heard, url, body.length])).toEqual([
      [method, "/one", 4],
      ["GET", "/two", 0],
    ]);
    for (const { rawHeaders } of seen) {
      expect(headersOf(rawHeaders, "host")).toEqual([NAME]);
      expect(headersOf(rawHeaders, "authorization")).toEqual([SECRET]);
    }
  },
);

test("an upgrade with a body, or after requests that have no answer yet, does not put itself before them", async () => {
  const { seen, tls } = await world();
  const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  const one = `GET /one HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`;
  const heard = await said(
    tls(),
    `${one}${one}POST /b HTTP/1.1\r\nHost: ${NAME}\r\n${upgrade}Content-Length: 90\r\n\r\n`,
  );
  expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 400"]);
  expect(seen.map(({ url }) => url)).toEqual(["/one", "/one"]);
});

test("a guest that leaves takes its connection to the server with it, however far that is", async () => {
  const upstreams = new Set<Socket>();
  const silent = createNetServer((socket) => upstreams.add(socket.on("error", () => {})));
  const { port } = await listening(silent);
  const { tls } = await world({ port });
  const socket = connectTls(tls());
  socket.on("error", () => {}).write(`GET / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
  await expect.poll(() => upstreams.size).toBe(1);
  const [upstream] = upstreams;
  const closed = upstream && once(upstream.resume(), "close");
  socket.destroy();
  await closed;
});

test("an answer that makes no sense ends its connection, and holds up nothing", async () => {
  const { port } = await listening(
    createTlsOf((socket) =>
      socket.once("data", () => socket.write("HTTP/1.1 200 \u0001OK\r\nContent-Length: 0\r\n\r\n")),
    ),
  );
  const { tls } = await world({ port });
  const one = `GET / HTTP/1.1\r\nHost: ${NAME}\r\n`;
  expect((await said(tls(), `${one}Connection: close\r\n\r\n`)).match(/HTTP\/1\.1 \d+/g)).toHaveLength(1);
});

test("a server that cannot prove its name gets no request", async () => {
  const { machine, seen, tls } = await world();
  machine.egress = rulesFor({ "*.example.org": added(SECRET) });
  const other = { ...tls("other.example.org"), headers: { host: "other.example.org" } };
  expect(await ask(other)).toMatchObject({ status: 502, text: expect.stringContaining("altnames") });
  expect(seen).toEqual([]);
});

test("a name that nothing is added for is led on as it is, and so is one that says no name of ours", async () => {
  const { reached, tls } = await world();
  await expect(ask({ ...tls("www.example.com"), headers: { host: "www.example.com" } })).rejects.toThrow(
    /self-signed|issuer|verify/,
  );
  expect(reached).toEqual(["www.example.com"]);
});

test("a connection ends when something else is to be added", async () => {
  const { gate, machine, tls } = await world();
  const socket = connectTls(tls());
  const ended = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
  socket.write(`GET / HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
  await once(socket, "data");
  machine.egress = rulesFor({ [NAME]: added("Bearer another") });
  gate.changed(machine);
  await ended;
});

test("an app that asks for more and more new names gets no more certificates for a while, and others do", async () => {
  const authority = openAuthority(await tempFolder("authority"));
  const deep = (n: number, app: string) => authority.contextFor(`a.${n}.example.com`, { app, ofMany: true });
  await Promise.all(Array.from({ length: 64 }, (_, n) => deep(n, "shop")));
  const more = Array.from({ length: 64 }, (_, n) => deep(100 + n, "shop"));
  expect((await Promise.allSettled(more)).at(-1)).toMatchObject({
    reason: { message: expect.stringMatching(/too many names/) },
  });
  await deep(1, "blog");
  // Siblings share one.
  const siblings = ["a", "b"].map((name) =>
    authority.contextFor(`${name}.1.example.com`, { app: "blog", ofMany: true }),
  );
  const [one, other] = await Promise.all(siblings);
  expect(one).toBe(other);
});
