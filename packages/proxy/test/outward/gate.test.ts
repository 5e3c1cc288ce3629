/** Connections of machines to names, over real sockets, TLS and name servers on the loopback interface. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { egressOf } from "@hibernaut/domain/egress";
import { outsideOf } from "@hibernaut/lib/public-addresses";
import packet from "dns-packet";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { readHost } from "../../src/outward/asked-host.ts";
import { type GatedMachine, openGate } from "../../src/outward/gate.ts";
import { type Reach, reachFrom } from "../../src/outward/reach.ts";

const RULES = egressOf({ default: "deny", allow: ["*.example.com"] });
const MACHINE = { id: "m1", app: "shop", address: "127.0.0.1", egress: RULES };

/** A gate whose names all lead to these servers, and what it refused. */
async function gateTo(outside: { http: number; tls: number }, reach?: Reach) {
  const machine: { now: GatedMachine | undefined } = { now: MACHINE };
  const refused: unknown[] = [];
  const reached: string[] = [];
  const local: Reach = async (name, port) => {
    reached.push(name);
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    await once(socket, "connect");
    return socket;
  };
  const gate = await openGate({
    ...{ address: "127.0.0.1", outside, machineAt: () => machine.now, reach: reach ?? local },
    onRefused: (_machine, what) => refused.push(what),
  });
  onTestFinished(() => gate.close());
  return { ...gate, machine, refused, reached };
}

async function webServers(): Promise<{ http: number; tls: number }> {
  const { cert, keyFile } = selfSigned(await tempFolder("gate"), "names", ["*.example.com"]);
  const http = createServer((asked, response) => response.end(`hello ${asked.headers.host}`)).listen(0, "127.0.0.1");
  const tls = createTlsServer({ cert, key: readFileSync(keyFile) }, (socket) => socket.end("hello")).listen(
    0,
    "127.0.0.1",
  );
  onTestFinished(() => void [http.close(), tls.close()]);
  await Promise.all([once(http, "listening"), once(tls, "listening")]);
  return { http: (http.address() as { port: number }).port, tls: (tls.address() as { port: number }).port };
}

const get = async (port: number, host: string) => {
  const sent = request({ port, host: "127.0.0.1", headers: { host }, agent: false }).end();
  const [response] = (await once(sent, "response")) as [AsyncIterable<Buffer> & { statusCode: number }];
  let text = "";
  for await (const piece of response) text += String(piece);
  return { status: response.statusCode, text };
};

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  for await (const piece of socket) text += String(piece as Buffer);
  return text;
}

test("a request and a TLS connection reach the name that they ask for, end to end", async () => {
  const gate = await gateTo(await webServers());
  expect(await get(gate.ports.http, "api.example.com:80")).toEqual({ status: 200, text: "hello api.example.com:80" });
  const options = { port: gate.ports.tls, host: "127.0.0.1", servername: "Deep.api.example.com" };
  expect(await textOf(connectTls({ ...options, rejectUnauthorized: false }))).toBe("hello");
  expect(gate.reached).toEqual(["api.example.com", "deep.api.example.com"]);
  expect(gate.refused).toEqual([]);
});

test("another name, none, and what is neither HTTP nor TLS reach nothing, and are told", async () => {
  const outside = await webServers();
  const gate = await gateTo(outside);
  expect(await get(gate.ports.http, "example.org")).toEqual({
    status: 403,
    text: expect.stringMatching(/network\.egress/),
  });
  const tls = (servername?: string) =>
    once(connectTls({ port: gate.ports.tls, host: "127.0.0.1", ...(servername && { servername }) }), "secureConnect");
  await expect(tls("example.com.evil.org")).rejects.toThrow(/unrecognized name/);
  await expect(tls()).rejects.toThrow(/unrecognized name/);
  const raw = async (port: number, text: string) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(text);
    return textOf(socket).catch(String);
  };
  await raw(gate.ports.tls, "SSH-2.0-x\r\n");
  for (const text of [
    "GET / HTTP/1.1\r\nHost: api.example.com\r\nHost: evil.org\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: api.example.com\r\n evil.org\r\n\r\n",
    "GET http://evil.org/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
    "CONNECT evil.org:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\nHost: evil.org\r\nHost: api.example.com\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : evil.org\r\nHost: api.example.com\r\n\r\n",
    "\x16\x03\x01",
  ])
    expect(await raw(gate.ports.http, text)).toContain("403");
  expect(gate.reached).toEqual([]);
  const { http, tls: tlsPort } = outside;
  expect(gate.refused).toEqual([
    { name: "example.org", port: http },
    { name: "example.com.evil.org", port: tlsPort },
    ...[1, 2].map(() => ({ name: undefined, port: tlsPort })),
    ...[1, 2, 3, 4, 5, 6, 7].map(() => ({ name: undefined, port: http })),
  ]);
});

describe("a name is reached", () => {
  /** A name server that has one answer for each name. */
  async function nameServer(answers: Record<string, string[]>): Promise<string> {
    const socket = createSocket("udp4");
    socket.on("message", (bytes, { port, address }) => {
      const { id = 0, questions = [] } = packet.decode(bytes);
      const name = questions[0]?.name ?? "";
      const found = (answers[name] ?? []).map((data) => ({ type: "A" as const, name, ttl: 1, data }));
      socket.send(packet.encode({ type: "response", id, questions, answers: found }), port, address);
    });
    socket.bind(0, "127.0.0.1");
    onTestFinished(() => void socket.close());
    await once(socket, "listening");
    return `127.0.0.1:${socket.address().port}`;
  }

  test("at its public addresses only, and never on this host or where no machine may be", async () => {
    const inner = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0", "100.100.100.200"];
    const server = await nameServer({ "rebound.example.com": inner, "blocked.example.com": ["203.0.113.77"] });
    const reach = reachFrom({ mayLead: outsideOf(["203.0.113.0/24"]), nameServers: [server] });
    const never = new AbortController().signal;
    for (const name of ["rebound.example.com", "blocked.example.com"])
      await expect(reach(name, 80, never)).rejects.toThrow("leads nowhere");
    await expect(reach("none.example.com", 80, never)).rejects.toThrow("does not resolve");
  });

  test("no longer than its machine waits", async () => {
    const silent = createSocket("udp4").bind(0, "127.0.0.1");
    onTestFinished(() => void silent.close());
    await once(silent, "listening");
    const reach = reachFrom({ mayLead: () => true, nameServers: [`127.0.0.1:${silent.address().port}`] });
    const left = new AbortController();
    const reached = reach("slow.example.com", 80, left.signal);
    left.abort(new Error("left"));
    await expect(reached).rejects.toThrow();
  });
});

test("a connection ends when the rules of its machine no longer allow its name, or the machine is another one", async () => {
  const gate = await gateTo(await webServers());
  const open = async () => {
    const socket = connect(gate.ports.http, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    await once(socket, "data");
    return socket;
  };
  const one = await open();
  gate.machine.now = { ...MACHINE, egress: egressOf({ default: "deny", allow: ["api.example.com"] }) };
  gate.changed(MACHINE);
  one.write("GET /again HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
  await once(one, "data");
  gate.machine.now = { ...MACHINE, egress: egressOf({ default: "deny" }) };
  gate.changed(MACHINE);
  expect((await once(one, "error"))[0]).toMatchObject({ code: "ECONNRESET" });

  gate.machine.now = MACHINE;
  const two = await open();
  gate.machine.now = { ...MACHINE, id: "m2" };
  gate.changed(MACHINE);
  expect((await once(two, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
});

test("what comes without rules is cut off, and told to nobody", async () => {
  const gate = await gateTo(await webServers());
  gate.machine.now = { id: "m3", app: "other", address: "127.0.0.1" };
  const socket = connect(gate.ports.http, "127.0.0.1");
  expect((await once(socket, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
  expect(gate.refused).toEqual([]);
});

test("one machine has up to 256 connections, and the next is refused at once", async () => {
  const gate = await gateTo(await webServers());
  const open = () => {
    const socket = connect(gate.ports.tls, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  await Promise.all(Array.from({ length: 256 }, () => once(open(), "connect")));
  const one = open();
  const [error] = (await once(one, "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNRESET");
});

test("the host of a request is read alike in one piece and in many, and garbage neither throws nor waits without end", () => {
  const head = "POST /a HTTP/1.1\r\nAccept: */*\r\nhost:\t Api.Example.com. \r\n\r\nbody";
  for (let length = 1; length < head.length; length += 1) {
    const reading = readHost(Buffer.from(head.slice(0, length)));
    if (length < head.length - 4) expect(reading).toEqual({ kind: "more" });
    else expect(reading).toEqual({ kind: "host", name: "api.example.com" });
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void readHost(Buffer.from(bytes))));
  // Cheap, whatever it is: everyone waits for it.
  const slow = Buffer.from(`GET / HTTP/1.1\r\nHost:${" ".repeat(15_000)}\nx\r\n\r\n`);
  const began = process.cpuUsage().user;
  expect(readHost(slow)).toEqual({ kind: "bad" });
  expect(process.cpuUsage().user - began).toBeLessThan(500_000);
  expect(readHost(Buffer.alloc(20_000, "A"))).toEqual({ kind: "bad" });
  expect(readHost(Buffer.from(`GET /${"a".repeat(20_000)}`))).toEqual({ kind: "bad" });
});
