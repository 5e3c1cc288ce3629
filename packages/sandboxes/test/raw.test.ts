/** Single requests that only a client sends that writes bytes itself, and what is left of a connection at the end. */
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { enveloped, openPort, type Port } from "./port.ts";
import { inside, newTenant, type Tenant } from "./tenant.ts";

let port: Port;
let of: Tenant;

beforeAll(async () => {
  port = await openPort();
  of = await newTenant(port, "shop");
});
afterAll(() => port.close());

const linesOf = (headers: object) =>
  Object.entries(headers)
    .map((line) => `${line.join(": ")}\r\n`)
    .join("");

/** Sends bytes, and returns all that comes back until the port hangs up. */
async function raw(head: string, headers: object = {}, body: string | Buffer = ""): Promise<string> {
  const socket = connect(port.port, "127.0.0.1");
  socket.write(`${head}\r\n${linesOf({ connection: "close", ...headers })}\r\n`);
  socket.end(body);
  return text(socket);
}

test.each<[string, string, object]>([
  ["a path of two slashes", "GET //:99999/ HTTP/1.1", { host: "x" }],
  ["what is not an address", "GET http://[/ HTTP/1.1", { host: "x" }],
  ["no path", "OPTIONS * HTTP/1.1", { host: "x" }],
  ["what is not a host", "POST /process.Process/List HTTP/1.1", { host: ":0" }],
  ["an empty host", "POST /process.Process/List HTTP/1.1", { host: "" }],
  ["no host", "POST /process.Process/List HTTP/1.0", {}],
])("%s is a mistake of the client's", async (_title, head, headers) => {
  const reply = await raw(head, { ...headers, ...inside(of.running, of.token), "content-type": "application/json" });
  expect(reply).toMatch(/^HTTP\/1.1 40[04] /);
  expect(reply).toMatch(/\{"message":".*","code":40[04]\}/);
});

test("a path that cannot be decoded is refused in the form of the clients, and a long name is a name", async () => {
  const headers = { "x-api-key": of.key };
  const broken = await port.ask("GET /sandboxes/%zz", { headers });
  expect([broken.status, JSON.parse(broken.body)]).toMatchObject([400, { code: 400 }]);
  const long = await port.ask(`GET /templates/${"a".repeat(120)}/tags`, { headers });
  expect([long.status, JSON.parse(long.body)]).toMatchObject([404, { code: 404 }]);
  expect(await port.ask(`GET /sandboxes/${"a".repeat(2000)}`, { headers })).toMatchObject({ status: 400 });
});

test("the reply to a HEAD that would become something else has no body", async () => {
  const reply = await raw("HEAD / HTTP/1.1", { host: "x", connection: "upgrade", upgrade: "websocket" });
  expect(reply).toMatch(/^HTTP\/1.1 400 [^]*\r\n\r\n$/);
});

test("a message that cannot be read is the client's mistake, in any format", async () => {
  const by = inside(of.running, of.token);
  for (const [type, body, more] of [
    ["application/proto", Buffer.from([0x0a, 200]), {}],
    ["application/json", Buffer.from([31, 139, 8]), { "content-encoding": "gzip" }],
  ] as const) {
    const headers = { ...by, ...more, "content-type": type };
    const reply = await port.ask("POST /filesystem.Filesystem/Stat", { headers, body });
    expect([reply.status, JSON.parse(reply.body)]).toMatchObject([400, { code: "invalid_argument" }]);
  }
  const stream = { ...by, "content-type": "application/connect+proto" };
  for (const body of [Buffer.from([0, 0, 0, 0, 2, 0x0a, 200]), Buffer.from([1, 0, 0, 0, 1, 0])])
    for (const path of ["filesystem.Filesystem/WatchDir", "process.Process/StreamInput"])
      expect(await port.ask(`POST /${path}`, { headers: stream, body })).toMatchObject({
        body: expect.stringContaining('{"error":{"code":"invalid_argument"') as string,
      });
});

test.each<[string, (tag: string) => object]>([
  ["process.Process/Start", () => ({ process: { cmd: "stay" } })],
  ["process.Process/Connect", (tag) => ({ process: { tag } })],
  ["filesystem.Filesystem/WatchDir", () => ({ path: "/" })],
])("a client of %s whose time is over is told so: nothing has ended", async (path, message) => {
  const type = { "content-type": "application/connect+json", "connect-timeout-ms": "300" };
  const body = enveloped(message(of.program));
  const reply = await port.ask(`POST /${path}`, { headers: { ...inside(of.running, of.token), ...type }, body });
  expect([reply.status, reply.body]).toEqual([
    200,
    expect.stringContaining('{"error":{"code":"deadline_exceeded"') as string,
  ]);
});

test("a terminal has a size that fits it", async () => {
  const headers = { ...inside(of.running, of.token), "content-type": "application/json" };
  for (const size of [
    { rows: 70_000, cols: 80 },
    { rows: 24, cols: 2 ** 32 - 1 },
  ]) {
    const body = JSON.stringify({ process: { tag: of.program }, pty: { size } });
    expect(await port.ask("POST /process.Process/Update", { headers, body })).toMatchObject({ status: 400 });
  }
});

test.each([
  ["a status that is too small", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"],
  ["another protocol", "SSH-2.0-OpenSSH_9.9\r\n"],
  [
    "a change of protocol that nobody asked for",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
  ],
  ["a header without end", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(50_000)}`],
])("a program that answers with %s is not believed, and it is not the platform's fault", async (_title, says) => {
  const usual = port.listener.says;
  port.listener.says = says;
  const headers = { ...inside(of.running), "e2b-sandbox-port": "80", "e2b-traffic-access-token": of.traffic };
  const reply = await port.ask("GET /", { headers });
  port.listener.says = usual;
  expect([reply.status, JSON.parse(reply.body)]).toMatchObject([502, { code: 502, sandboxId: of.running }]);
});

test("the port closes, also while a program's WebSocket is open", async () => {
  const other = await openPort();
  const { running, traffic } = await newTenant(other, "shop");
  const socket = connect(other.port, "127.0.0.1");
  const headers = { host: "x", ...inside(running), "e2b-sandbox-port": "80", "e2b-traffic-access-token": traffic };
  socket.write(`GET / HTTP/1.1\r\n${linesOf({ ...headers, connection: "upgrade", upgrade: "websocket" })}\r\n`);
  await once(socket, "data");
  const gone = once(socket, "close");
  await other.close();
  await gone;
});
