/** Client connections: kept, pipelined, timed out, closed. */
import { execFileSync } from "node:child_process";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProxyRefusal } from "../../src/contract.ts";
import { createProxyServer } from "../../src/http/server.ts";
import { CLOSE, httpApp, KEEP, noLeases, parsed, rig, statuses, until } from "./helpers.ts";

const hello = () => httpApp((request, response) => void response.end(`hello ${request.url}`));
const silent = () => httpApp((request) => void request.on("error", () => {}).resume());

describe("a connection", () => {
  test("takes one request after the other, on one connection to the app", async () => {
    const app = await hello();
    const { client, log, heads, proxy } = await rig({ app });
    const browser = await client();
    for (const path of ["/1", "/2", "/3"]) await browser.send(`GET ${path} HTTP/1.1\r\n${KEEP}`).sees(`hello ${path}`);
    expect(app.accepted).toBe(1);
    expect(log.map((entry) => entry.target)).toEqual(["/1", "/2", "/3"]);
    expect(new Set(heads.map((head) => head.connection)).size).toBe(1);
    await until(() => proxy.stats().idleMachineConnections === 1, "the connection to be kept");
  });

  test("answers pipelined requests in order, however slow the first", async () => {
    const app = await httpApp((request, response) => {
      if (request.url === "/0") setImmediate(() => setImmediate(() => response.end("hello /0")));
      else response.end(`hello ${request.url}`);
    });
    const { client } = await rig({ app });
    const browser = await client();
    const paths = Array.from({ length: 200 }, (_, index) => `/${index}`);
    browser.send(paths.map((path) => `GET ${path} HTTP/1.1\r\n${KEEP}`).join(""));
    await browser.sees("hello /199");
    expect([...browser.text.matchAll(/hello (\/\d+)/g)].map((match) => match[1])).toEqual(paths);
  });

  test("waits in a rush that comes while the proxy is busy, and is not dropped", async () => {
    const proxy = createProxyServer({ leases: noLeases });
    onTestFinished(() => proxy.close(0));
    const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
    // A rush from another process, while this one is busy waiting for it.
    const rush = `
      import { connect } from "node:net";
      let open = 0;
      for (let count = 0; count < 1000; count += 1)
        connect(${port}, "127.0.0.1", () => (open += 1) === 1000 && process.exit());
    `;
    const options = { timeout: 20_000, stdio: "inherit" } as const;
    execFileSync(process.execPath, ["--input-type=module", "--eval", rush], options);
  });

  test("is bounded in what it reads ahead", async () => {
    const { client } = await rig({ app: await silent(), limits: { aheadBytes: 1000, responseHeadMs: 1000 } });
    const browser = await client();
    browser.send(`GET / HTTP/1.1\r\n${KEEP}`);
    const piece = Buffer.alloc(1024 * 1024, `GET / HTTP/1.1\r\n${KEEP}`);
    for (let count = 0; count < 64; count += 1) browser.send(piece);
    // Some megabytes fit into the kernel's buffers; the rest stays with the client.
    for (let turn = 0; turn < 500; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(browser.socket.writableLength).toBeGreaterThan(32 * 1024 * 1024);
  });

  test.each([
    ["HTTP/1.1 and close", `GET / HTTP/1.1\r\n${CLOSE}`, "close"],
    ["HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "close"],
  ])("is closed after %s", async (_name, request, connection) => {
    const { ask } = await rig({ app: await hello() });
    expect(parsed(await ask(request)).headers.get("connection")).toBe(connection);
  });

  test("is kept after a refusal of the lease provider", async () => {
    const refuse = async () => {
      throw new ProxyRefusal(503, "no_capacity", "All machines are busy. Try again.", { retryAfterS: 1.5 });
    };
    const { client, log, faults } = await rig({ leaseFor: refuse });
    const browser = await client();
    browser.send(`POST / HTTP/1.1\r\nContent-Length: 3\r\n${KEEP}abc`);
    const { status, headers, body } = parsed(await browser.sees("}\n"));
    expect(status).toBe(503);
    expect(headers.get("retry-after")).toBe("2");
    expect(headers.get("connection")).toBe(undefined);
    const id = headers.get("hibernaut-request-id");
    expect(JSON.parse(body)).toEqual({
      error: "no_capacity",
      message: "All machines are busy. Try again.",
      request_id: id,
    });
    browser.send(`HEAD / HTTP/1.1\r\n${KEEP}`);
    await until(() => statuses(browser.text).length === 2, "the second answer");
    expect(browser.text.split("}\n")[1]).toMatch(/Content-Length: \d+\r\n\r\n$/);
    expect(log).toMatchObject([{ requestId: id, status: 503, error: "no_capacity", machineId: undefined }, {}]);
    expect(faults).toEqual([]);
  });

  test("is not told the details of a fault in the lease provider", async () => {
    const fault = new Error("secret");
    const { ask, faults } = await rig({
      leaseFor: async () => {
        throw fault;
      },
    });
    const reply = parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`));
    expect(reply.status).toBe(500);
    expect(reply.body).not.toContain("secret");
    expect(faults).toEqual([fault]);
  });
});

describe("time is up", () => {
  test("for a head that arrives too slowly: 408", async () => {
    const { ask, log } = await rig({ app: await hello(), limits: { headMs: 50 } });
    expect(parsed(await ask("GET / HT")).status).toBe(408);
    expect(log).toMatchObject([{ status: 408, error: "request_timeout" }]);
  });

  test("for a connection without a request, new or kept", async () => {
    const { ask, client } = await rig({ app: await hello(), limits: { headMs: 50, idleMs: 50 } });
    expect(await ask("")).toBe("");
    const browser = await client();
    await browser.send(`GET / HTTP/1.1\r\n${KEEP}`).sees("hello");
    await browser.ends();
    expect(statuses(browser.text)).toEqual([200]);
  });

  test("for a body that arrives too slowly: 408", async () => {
    const { ask, outcomes } = await rig({ app: await silent(), limits: { requestBodyMs: 50 } });
    expect(parsed(await ask(`POST / HTTP/1.1\r\nContent-Length: 5\r\n${KEEP}ab`)).status).toBe(408);
    expect(outcomes).toEqual([{ status: 408, error: "request_timeout" }]);
  });

  test("for a body that trickles: 408, however often a byte of it arrives", async () => {
    const limits = { requestBodyMs: 800, requestBodyLeast: 10 };
    const { client, outcomes } = await rig({ app: await silent(), limits });
    const [slow, steady] = [await client(), await client()];
    for (const one of [slow, steady]) one.send(`POST / HTTP/1.1\r\nContent-Length: 1000000\r\n${KEEP}`);
    const timer = setInterval(() => {
      if (slow.ending === undefined) slow.send("a");
      steady.send("0123456789");
    }, 100);
    onTestFinished(() => clearInterval(timer));
    expect(statuses(await slow.ends())).toEqual([408]);
    expect(outcomes).toEqual([{ status: 408, error: "request_timeout" }]);
    expect(steady.ending).toBeUndefined();
  });

  test("for an app that does not respond: 504", async () => {
    const { ask, outcomes } = await rig({ app: await silent(), limits: { responseHeadMs: 50 } });
    expect(parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`)).status).toBe(504);
    expect(outcomes).toEqual([{ status: 504, error: "upstream_timeout" }]);
  });

  test("for an app that falls silent: the client is cut off", async () => {
    const app = await httpApp((_request, response) => void response.write("half"));
    const { client, outcomes } = await rig({ app, limits: { responseBodyMs: 50 } });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await browser.ends();
    expect(browser.ending).toBe("reset");
    expect(outcomes).toEqual([{ status: 200, error: "upstream_stalled" }]);
  });

  test("for a client that does not read", async () => {
    const app = await httpApp((_request, response) => void response.end(Buffer.alloc(64 * 1024 * 1024)));
    const { client, outcomes } = await rig({ app, limits: { clientStallMs: 100 } });
    const browser = await client();
    browser.socket.pause();
    browser.send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => outcomes.length === 1, "the lease to be back");
    expect(outcomes).toEqual([{ status: 200, error: "client_stalled" }]);
  });

  test("for a lease provider that never decides: 504", async () => {
    let reason: unknown;
    const { ask } = await rig({
      limits: { findMachineMs: 50 },
      leaseFor: (_request, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject((reason = signal.reason) as Error));
        }),
    });
    expect(parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`)).status).toBe(504);
    expect(reason).toMatchObject({ code: "wake_timeout" });
  });

  test("for a connection that lingers", async () => {
    const { client, proxy } = await rig({ app: await hello(), limits: { lingerMs: 50 } });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${CLOSE}`);
    await browser.ends();
    await until(() => proxy.stats().clientConnections === 0, "the proxy to close");
  });
});

describe("close", () => {
  test("ends idle connections at once, lets requests finish, and tells their clients", async () => {
    let finish: (() => void) | undefined;
    const app = await httpApp((_request, response) => {
      finish = () => void response.end("done");
    });
    const { client, proxy } = await rig({ app });
    const [idle, busy] = [await client(), await client()];
    busy.send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => finish !== undefined, "the app to be asked");
    const closed = proxy.close(5000);
    await idle.ends();
    finish?.();
    const reply = parsed(await busy.ends());
    expect(reply).toMatchObject({ status: 200, body: "done" });
    expect(reply.headers.get("connection")).toBe("close");
    busy.socket.end();
    await closed;
  });

  test("cuts off requests that take longer", async () => {
    const { client, proxy, log } = await rig({ app: await silent() });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => proxy.stats().requests === 1, "the request to be under way");
    await proxy.close(20);
    await browser.ends();
    expect(log).toMatchObject([{ status: undefined, error: "cut" }]);
  });

  test("does nothing before listen; a port that is taken is reported", async () => {
    await createProxyServer({ leases: noLeases }).close(0);
    const { port } = await rig({ app: await hello() });
    await expect(createProxyServer({ leases: noLeases }).listen({ host: "127.0.0.1", port })).rejects.toThrow(
      "EADDRINUSE",
    );
  });

  test("several proxies share a port", async () => {
    const [one, two] = [createProxyServer({ leases: noLeases }), createProxyServer({ leases: noLeases })];
    const { port } = await one.listen({ host: "127.0.0.1", port: 0, reusePort: true });
    expect((await two.listen({ host: "127.0.0.1", port, reusePort: true })).port).toBe(port);
    await Promise.all([one.close(0), two.close(0)]);
  });
});
