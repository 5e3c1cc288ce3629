/** TLS with a directory of certificates, and HTTP/2 over it. */
import { rename, stat, writeFile } from "node:fs/promises";
import { constants } from "node:http2";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { Certificates } from "../../src/http/certificates.ts";
import { parseHttp2Request } from "../../src/http/http2-request.ts";
import { createProxyServer } from "../../src/http/server.ts";
import {
  type App,
  CLOSE,
  headApp,
  httpApp,
  KEEP,
  noLeases,
  parsed,
  RawClient,
  type RigOptions,
  rig,
  until,
} from "./helpers.ts";
import { ask, session } from "./http2-client.ts";
import { certificate, type Pair } from "./secured.ts";

const pairs = new Map<string, Pair>();
beforeAll(() => {
  for (const name of ["default", "shop.test", "wild", "newer"]) pairs.set(name, certificate(name));
});

async function put(folder: string, file: string, of: string, end = "crt"): Promise<void> {
  const { key, cert } = pairs.get(of) as Pair;
  await writeFile(join(folder, `${file}.key.new`), key);
  await writeFile(join(folder, `${file}.${end}.new`), cert);
  await rename(join(folder, `${file}.key.new`), join(folder, `${file}.key`));
  await rename(join(folder, `${file}.${end}.new`), join(folder, `${file}.${end}`));
}

async function secured(app: App, limits = {}, more: Partial<RigOptions> = {}) {
  const folder = await tempFolder("certificates");
  await put(folder, "default", "default");
  await put(folder, "shop.test", "shop.test", "pem");
  await put(folder, "_.wild.test", "wild");
  const proxy = await rig({ app, limits, tls: { folder, refreshMs: 10 }, ...more });
  return { folder, ...proxy };
}

/** A TLS connection; asks for `servername` unless that is empty. */
async function dial(port: number, servername: string, protocols = ["http/1.1"]): Promise<TLSSocket> {
  const socket = connect({
    ...{ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: protocols },
    ...(servername === "" ? {} : { servername }),
  });
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  return socket;
}

async function nameShown(port: number, servername: string): Promise<string> {
  const socket = await dial(port, servername);
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

const hello = () => httpApp((request, response) => void response.end(JSON.stringify(request.headers)));

test("a proxy says for which names it has a certificate, from when it listens", async () => {
  const folder = await tempFolder("certificates");
  await put(folder, "shop.test", "shop.test");
  const [plain, secure] = [
    createProxyServer({ leases: noLeases }),
    createProxyServer({ leases: noLeases, tls: { folder } }),
  ];
  onTestFinished(async () => void (await Promise.all([plain.close(0), secure.close(0)])));
  expect(secure.covers("shop.test")).toBe(false);
  await secure.listen({ host: "127.0.0.1", port: 0 });
  expect(["shop.test", "other.test"].map((name) => secure.covers(name))).toEqual([true, false]);
  expect(plain.covers("other.test")).toBe(true);
});

describe("TLS", () => {
  test("shows each name its certificate", async () => {
    const { port } = await secured(await hello());
    expect(await nameShown(port, "shop.test")).toBe("shop.test");
    expect(await nameShown(port, "SHOP.test")).toBe("shop.test");
    expect(await nameShown(port, "a.wild.test")).toBe("wild");
    expect(await nameShown(port, "a.b.wild.test")).toBe("default");
    expect(await nameShown(port, "other.test")).toBe("default");
    expect(await nameShown(port, "")).toBe("default");
  });

  test("takes new certificates, and keeps the old one while the new one is broken", async () => {
    const { port, folder, faults } = await secured(await hello());
    await writeFile(join(folder, "shop.test.pem"), "half a certific");
    await until(() => faults.length > 0, "the fault to be reported");
    expect(await nameShown(port, "shop.test")).toBe("shop.test");
    for (const [file, asked] of [
      ["shop.test", "shop.test"],
      ["default", ""],
    ] as const) {
      await put(folder, file, "newer", file === "default" ? "crt" : "pem");
      let shown = "";
      const deadline = performance.now() + 4000;
      while (shown !== "newer" && performance.now() < deadline) shown = await nameShown(port, asked);
      expect(shown).toBe("newer");
    }
  });

  test("checks its directory as often as it is told to, even while it still reads what it saw before", async () => {
    const folder = await tempFolder("certificates");
    await put(folder, "default", "default");
    const certificates = await Certificates.open({ folder }, () => {});
    for (const name of Array.from({ length: 20 }, (_, round) => ["newer", "default"][round % 2] as string)) {
      await put(folder, "default", name);
      const looks: Promise<void>[] = [];
      for (let look = 0; look < 20; look += 1) {
        looks.push(certificates.refresh());
        // As long as one step of a look takes, so that each is one step ahead of the next.
        await stat(folder);
      }
      await Promise.all(looks);
      expect(String(certificates.fallback.cert)).toBe(pairs.get(name)?.cert);
    }
  });

  test("serves HTTP/1.1 as without it, and says so to the app", async () => {
    const { port, log } = await secured(await hello());
    const browser = new RawClient(await dial(port, "shop.test"));
    browser.send(`GET /1 HTTP/1.1\r\n${KEEP}`);
    const { body } = parsed(await browser.sees("}"));
    expect(JSON.parse(body)).toMatchObject({ "x-forwarded-proto": "https", "x-forwarded-port": "443" });
    browser.send(`GET /2 HTTP/1.1\r\n${CLOSE}`);
    await browser.ends();
    expect(log.map((entry) => entry.target)).toEqual(["/1", "/2"]);
  });

  test("has browsers remember it, if it is told to and the app does not say how long itself", async () => {
    const app = await httpApp((request, response) => {
      if (request.url === "/own") response.setHeader("Strict-Transport-Security", "max-age=1");
      response.end("}");
    });
    const told = async (port: number, path: string) => {
      const browser = new RawClient(await dial(port, "shop.test"));
      const { headers } = parsed(await browser.send(`GET ${path} HTTP/1.1\r\n${CLOSE}`).ends());
      browser.socket.destroy();
      return headers.get("strict-transport-security");
    };
    const { port } = await secured(app, {}, { hstsS: 60 });
    expect([await told(port, "/"), await told(port, "/own")]).toEqual(["max-age=60", "max-age=1"]);
    expect(await told((await secured(app)).port, "/")).toBeUndefined();
    const plain = await rig({ app, hstsS: 60 });
    expect(await plain.ask(`GET / HTTP/1.1\r\n${CLOSE}`)).not.toMatch(/strict-transport/i);
  });

  test("cuts off a broken response without a TLS close notification", async () => {
    const app = await headApp((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
      setImmediate(() => socket.resetAndDestroy());
    });
    const { port, outcomes } = await secured(app);
    const browser = new RawClient(await dial(port, "shop.test"));
    browser.send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => browser.socket.destroyed, "the end");
    expect(outcomes).toEqual([{ status: 200, error: "upstream_broke" }]);
  });

  test("does not wait for a handshake that never arrives", async () => {
    const { client } = await secured(await hello(), { handshakeMs: 50 });
    await (await client()).ends();
  });
});

describe("HTTP/2", () => {
  test("brings requests to the app as HTTP/1.1", async () => {
    const { port, log, heads } = await secured(await hello());
    const reply = await ask(session(port), {
      ":path": "/a?b",
      cookie: ["a=1", "__Host-hibernaut_session=secret", "b=2"],
      "x-forwarded-for": "6.6.6.6",
    });
    expect(reply.headers).toMatchObject({ ":status": 200, via: "1.1 hibernaut", "hibernaut-wake": "running; dur=0" });
    expect(JSON.parse(reply.body)).toMatchObject({
      host: "shop.test",
      cookie: "a=1; b=2",
      via: "2.0 hibernaut",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "https",
    });
    expect(heads).toMatchObject([{ host: "shop.test", httpVersion: "2.0", secure: true, target: "/a?b" }]);
    expect(log).toMatchObject([{ status: 200, httpVersion: "2.0" }]);
  });

  test("carries many requests at once", async () => {
    const { port, heads } = await secured(await httpApp((request, response) => void response.end(request.url)));
    const client = session(port);
    const paths = Array.from({ length: 100 }, (_, index) => `/${index}`);
    const replies = await Promise.all(paths.map((path) => ask(client, { ":path": path })));
    expect(replies.map((reply) => reply.body)).toEqual(paths);
    expect(new Set(heads.map((head) => head.connection)).size).toBe(1);
  });

  test("carries large bodies both ways", async () => {
    const { port } = await secured(await httpApp((request, response) => void request.pipe(response)));
    const body = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
    const client = session(port);
    const unknown = await ask(client, { ":method": "POST" }, body);
    expect(unknown.body === body.toString("latin1")).toBe(true);
    const known = await ask(client, { ":method": "POST", "content-length": body.length }, body);
    expect(known.body.length).toBe(body.length);
  });

  test("carries a body again that the app sends on, as far as it is kept", async () => {
    const app = await httpApp((request, response) => {
      if (request.headers["fly-replay-src"] !== undefined) return void request.pipe(response);
      request.resume().on("end", () => response.writeHead(200, { "fly-replay": "instance=m1" }).end());
    });
    const replayTo: RigOptions["replayTo"] = ({ machine }) => ({ from: "shop", app: "shop", machineId: machine });
    const { port } = await secured(app, { replayBodyBytes: 100_000 }, { replayTo });
    const client = session(port);
    const body = Buffer.alloc(100_000, "0123456789abcdef");
    expect((await ask(client, { ":method": "POST" }, body)).body === body.toString("latin1")).toBe(true);
    expect((await ask(client, { ":method": "POST", "content-length": 5 }, "hello")).body).toBe("hello");
    const refused = await ask(client, { ":method": "POST" }, Buffer.alloc(100_001));
    expect(refused.headers).toMatchObject({ ":status": 413 });
  });

  test("carries interim responses, trailers, and answers without a body", async () => {
    const app = await httpApp((request, response) => {
      if (request.method === "HEAD") return void response.setHeader("content-length", 7).end();
      if (request.url === "/304") return void response.writeHead(304).end();
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.writeHead(200, { trailer: "x-sum", "set-cookie": ["a=b", "c=d"] });
      response.write("text");
      response.addTrailers({ "x-sum": "1" });
      response.end();
    });
    const { port } = await secured(app);
    const client = session(port);
    const reply = await ask(client, {});
    expect(reply).toMatchObject({ body: "text", trailers: { "x-sum": "1" }, interim: [103] });
    expect(reply.headers).toMatchObject({ "set-cookie": ["a=b", "c=d"] });
    expect((await ask(client, { ":method": "HEAD" })).headers).toMatchObject({ "content-length": "7" });
    expect((await ask(client, { ":path": "/304" })).headers).toMatchObject({ ":status": 304 });
  });

  test("resets a stream whose app died, and keeps the others", async () => {
    const app = await headApp((socket, text) => {
      if (text.includes("/dies"))
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", () => socket.destroy());
      else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
    });
    const { port, outcomes } = await secured(app);
    const client = session(port);
    for (const path of ["/dies", "/dies/in/chunks"])
      expect((await ask(client, { ":path": path })).reset).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect((await ask(client, { ":path": "/" })).body).toBe("fine");
    expect(outcomes).toEqual([
      { status: 200, error: "upstream_broke" },
      { status: 200, error: "upstream_broke" },
      { status: 200, error: undefined },
    ]);
  });

  test("tells the app when a client has cancelled", async () => {
    const app = await httpApp((_request, response) => void response.write("half"));
    const { port, outcomes } = await secured(app);
    const stream = session(port).request({ ":authority": "shop.test" });
    await new Promise((resolve) => stream.once("data", resolve));
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => app.open.size === 0, "the app to lose its connection");
    expect(outcomes).toEqual([{ status: 200, error: "client_gone" }]);
  });

  test("answers early, and stops the rest of the body", async () => {
    const app = await headApp((socket) => socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nstop"));
    const { port } = await secured(app);
    const stream = session(port).request({ ":method": "POST", ":authority": "shop.test" });
    let [status, body] = [0, ""];
    stream.on("response", (headers) => (status = Number(headers[":status"])));
    stream.on("data", (piece: Buffer) => (body += piece.toString()));
    stream.write("begin");
    await until(() => stream.closed, "the stream to close");
    expect([status, body, stream.rstCode]).toEqual([413, "stop", constants.NGHTTP2_NO_ERROR]);
  });

  test.each([
    [405, { ":method": "CONNECT", ":authority": "a.test:443" }],
    [400, { ":path": "/#a" }],
    [431, { x: "a".repeat(33_000) }],
    [431, Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`x-${index}`, "a"]))],
  ])("answers %d to what it does not serve", async (status, headers) => {
    const { port, log, heads } = await secured(await hello());
    const client = session(port);
    const reply = await ask(client, headers);
    expect(heads).toEqual([]);
    // Some of it is reset by the session, before anyone could answer.
    const { NGHTTP2_PROTOCOL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } = constants;
    if (reply.status === 0) expect([NGHTTP2_PROTOCOL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM]).toContain(reply.reset);
    else {
      expect(reply.status).toBe(status);
      expect(log).toMatchObject([{ status }]);
    }
  });

  test("closes a connection without requests", async () => {
    const { port } = await secured(await hello(), { idleMs: 50 });
    const client = session(port);
    await ask(client, {});
    await until(() => client.closed, "the session to close");
  });

  test("lets streams finish when the proxy closes", async () => {
    let finish: (() => void) | undefined;
    const app = await httpApp((_request, response) => (finish = () => void response.end("done")));
    const { port, proxy } = await secured(app);
    const client = session(port);
    const reply = ask(client, {});
    await until(() => finish !== undefined, "the app to be asked");
    const closed = proxy.close(4000);
    finish?.();
    expect((await reply).body).toBe("done");
    await closed;
  });
});

describe("a head of HTTP/2", () => {
  const raw = (over: Record<string, string>) =>
    Object.entries({ ":method": "GET", ":path": "/", ":scheme": "https", ":authority": "a.test", ...over }).flat();
  const parse = (fields: string[], ended = true) => parseHttp2Request(fields, ended, { headFields: 5, headBytes: 500 });

  test("is understood", () => {
    expect(parse(raw({ "content-length": "3" }), false)).toMatchObject({ framing: { kind: "length", length: 3 } });
    expect(parse(raw({}), false)).toMatchObject({ framing: { kind: "chunked" }, host: "a.test", target: "/" });
    expect(parse([...raw({ ":authority": "" }).filter((_, at) => at < 6), "host", "b.test"])).toMatchObject({
      host: "b.test",
    });
  });

  test.each([
    [{ ":path": "nowhere" }],
    [{ ":path": "/#a" }],
    [{ ":path": "/\r\nX: y" }],
    [{ ":path": "*" }],
    [{ ":method": "GE T" }],
    [{ ":method": "CONNECT" }],
    [{ ":authority": "" }],
    [{ ":authority": "u@a.test" }],
    [{ host: "b.test" }],
    [{ "X-Upper": "a" }],
    [{ "x y": "a" }],
    [{ x: "a\r\nb: c" }],
    [{ x: "a\0" }],
    [{ x: "\u0100" }],
    [{ "transfer-encoding": "chunked" }],
    [{ connection: "close" }],
    [{ upgrade: "h2c" }],
    [{ "content-length": "3" }],
    [{ "content-length": "+0" }],
    [{ x: "a".repeat(500) }],
    [{ a: "", b: "", c: "", d: "", e: "", f: "" }],
  ])("%j is refused", (over) => {
    expect(() => parse(raw(over as Record<string, string>))).toThrow();
  });

  test("with a pseudo-field twice is refused", () => {
    expect(() => parse([...raw({}), ":path", "/b"])).toThrow();
  });
});
