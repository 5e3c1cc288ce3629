/** Clients that leave, apps that die, and what is sent again. */
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { ProxyRefusal } from "../../src/contract.ts";
import { type App, CLOSE, headApp, httpApp, KEEP, OK, parsed, rawApp, rig, until } from "./helpers.ts";

describe("the client leaves", () => {
  test("while a machine wakes: the lease provider's signal aborts, and a late lease is given back", async () => {
    const woken = Promise.withResolvers<void>();
    const aborted: unknown[] = [];
    let asked = false;
    const { client, log, outcomes } = await rig({
      leaseFor: async (_request, signal, lease) => {
        asked = true;
        signal.addEventListener("abort", () => aborted.push(signal.reason));
        await woken.promise;
        return lease();
      },
    });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => asked, "the lease provider to be asked");
    expect(log).toEqual([]);
    browser.socket.destroy();
    await until(() => aborted.length === 1, "the abort");
    woken.resolve();
    await until(() => outcomes.length === 1, "the lease to be back");
    expect(outcomes).toEqual([{ status: undefined, error: "client_gone" }]);
    expect(log).toMatchObject([{ status: undefined, error: "client_gone" }]);
  });

  test.each([
    ["before the response", () => {}, undefined],
    ["in its middle", (socket: Socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), 200],
  ])("%s: the app's connection is closed", async (_name, act, status) => {
    const app = await headApp(act);
    const { client, outcomes } = await rig({ app });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => app.open.size === 1, "the app to be asked");
    if (status !== undefined) await browser.sees("half");
    browser.socket.destroy();
    await until(() => app.open.size === 0, "the app to lose its connection");
    expect(outcomes).toEqual([{ status, error: "client_gone" }]);
  });

  test("in the middle of its body", async () => {
    const app = await httpApp((request) => void request.on("error", () => {}).resume());
    const { client, outcomes } = await rig({ app });
    const browser = (await client()).send(`POST / HTTP/1.1\r\nContent-Length: 100\r\n${KEEP}half`);
    await until(() => app.open.size === 1, "the app to be asked");
    browser.socket.resetAndDestroy();
    await until(() => app.open.size === 0 && outcomes.length === 1, "the app to lose its connection");
    expect(outcomes).toEqual([{ status: undefined, error: "client_gone" }]);
  });
});

describe("the app dies", () => {
  test("in the middle of a body: the client is cut off, in HTTP/1.0 too", async () => {
    let kill = () => {};
    const app = await headApp((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
      kill = () => socket.end();
    });
    const { client, outcomes } = await rig({ app });
    for (const version of ["1.1", "1.0"]) {
      const browser = (await client()).send(`GET / HTTP/${version}\r\n${KEEP}`);
      await browser.sees("half");
      kill();
      await browser.ends();
      expect(browser.ending).toBe("reset");
      expect(browser.text).not.toContain("0\r\n\r\n");
      await until(() => app.open.size === 0, "the app's connection to close");
    }
    const broke = { status: 200, error: "upstream_broke" };
    expect(outcomes).toEqual([broke, broke]);
  });

  test.each([
    ["GET", "", 3],
    ["HEAD", "", 3],
    ["DELETE", "", 3],
    ["POST", "", 1],
    ["PATCH", "", 1],
    ["PUT", "Content-Length: 3\r\n", 1],
    ["PUT", "Transfer-Encoding: chunked\r\n", 1],
  ])("without an answer: %s with %j is given to %d machines", async (method, field, times) => {
    const app = await headApp((socket) => socket.end());
    const { ask, outcomes, heads } = await rig({ app });
    const body = field === "" ? "" : field.startsWith("C") ? "abc" : "0\r\n\r\n";
    const reply = parsed(await ask(`${method} / HTTP/1.1\r\n${field}${CLOSE}${body}`));
    expect(reply.status).toBe(502);
    expect(app.accepted).toBe(times);
    expect(heads.map((head) => head.tried.length)).toEqual([0, 1, 2].slice(0, times));
    expect(outcomes.at(-1)).toEqual({ status: 502, error: "upstream_closed" });
    expect(outcomes).toHaveLength(times);
  });

  test("without a response: the next machine responds", async () => {
    const bad = await headApp((socket) => socket.resetAndDestroy());
    const good = await headApp((socket) => socket.write(OK));
    const { ask, outcomes, log } = await rig({
      leaseFor: async ({ tried }, _signal, lease) =>
        tried.includes("bad")
          ? lease({ machineId: "good", port: good.port })
          : lease({ machineId: "bad", port: bad.port }),
    });
    expect(parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`)).status).toBe(200);
    expect(outcomes).toEqual([{ error: "upstream_closed" }, { status: 200, error: undefined }]);
    expect(log).toMatchObject([{ machineId: "good", error: undefined }]);
  });
});

describe("a kept connection dies", () => {
  /** Answers the first request of a connection, and kills it with the second one. */
  const onlyOnce = () =>
    rawApp((socket) => {
      let heads = 0;
      socket.on("data", () => {
        heads += 1;
        if (heads === 1) socket.write(OK);
        else socket.resetAndDestroy();
      });
    });

  test.each([
    ["GET", 200, 2],
    ["POST", 502, 1],
  ])("with %s on it: %d", async (method, status, accepted) => {
    const app = await onlyOnce();
    const { client, ask, heads, outcomes } = await rig({ app });
    await (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`).sees("ok");
    expect(parsed(await ask(`${method} / HTTP/1.1\r\n${CLOSE}`)).status).toBe(status);
    expect(app.accepted).toBe(accepted);
    // The machine is not given back for it.
    expect(heads).toHaveLength(2);
    expect(outcomes).toHaveLength(2);
  });

  test("is closed when it was idle for too long", async () => {
    const app = await httpApp((_request, response) => void response.end("ok"));
    const { client, proxy } = await rig({ app, limits: { machineIdleMs: 30 } });
    await (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`).sees("ok");
    await until(() => proxy.stats().machineConnections === 0, "the proxy to let go");
  });
});

describe("connecting", () => {
  test("retries until the port answers", async () => {
    const port = await freePort();
    let app: App | undefined;
    const { ask, log } = await rig({
      leaseFor: async (_request, _signal, lease) => {
        // Long enough for several attempts that nobody answers.
        setTimeout(() => void httpApp((_, response) => void response.end("up"), port).then((up) => (app = up)), 50);
        const wake = { kind: "resume", durationMs: 12.4 } as const;
        return lease({ port, wake, connectDeadline: performance.now() + 8000 });
      },
    });
    const reply = parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`));
    expect(reply).toMatchObject({ status: 200, body: "up" });
    expect(reply.headers.get("hibernaut-wake")).toBe("resume; dur=12");
    expect(app?.accepted).toBe(1);
    expect(log).toMatchObject([{ wake: { kind: "resume" } }]);
  });

  test("ends at the deadline: the next machine gets the whole body", async () => {
    const nobody = await freePort();
    const app = await httpApp((request, response) => void request.pipe(response));
    const { ask, outcomes } = await rig({
      app,
      leaseFor: async ({ tried }, _signal, lease) => (tried.length === 0 ? lease({ port: nobody }) : lease()),
    });
    expect(parsed(await ask(`POST / HTTP/1.1\r\nContent-Length: 5\r\n${CLOSE}hello`)).body).toContain("hello");
    expect(outcomes).toEqual([{ error: "upstream_unreachable" }, { status: 200, error: undefined }]);
  });

  test("is given up after three machines: 502", async () => {
    const port = await freePort();
    const { ask, outcomes, heads } = await rig({
      leaseFor: async ({ tried }, _signal, lease) => lease({ port, machineId: `m${tried.length}`, connectDeadline: 0 }),
    });
    const reply = parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`));
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.body)).toMatchObject({ error: "upstream_unreachable" });
    expect(outcomes).toHaveLength(3);
    expect(heads.at(-1)?.tried).toEqual(["m0", "m1"]);
  });

  test.each([
    [1, { error: "upstream_unreachable", message: expect.stringMatching(/m0 of app shop.*port \d+ \(.*ECONNREFUSED/) }],
    [2, { error: "no_machine_left" }],
  ])("when all %i machines there are were tried in vain, the answer says why", async (count, answer) => {
    const port = await freePort();
    const { ask } = await rig({
      leaseFor: async ({ tried }, _signal, lease) => {
        if (tried.length === count) throw new ProxyRefusal(502, "no_machine_left", "No machine is left.");
        return lease({ port, machineId: `m${tried.length}`, connectDeadline: 0 });
      },
    });
    const reply = parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`));
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.body)).toMatchObject(answer);
  });

  test("ends when the machine has left: the request waits for a machine again, and does not fail", async () => {
    const port = await freePort();
    const app = await httpApp((_, response) => void response.end("back"));
    const { client, heads, outcomes, proxy } = await rig({
      app,
      leaseFor: async (_request, _signal, lease) =>
        heads.length === 1 ? lease({ port, connectDeadline: performance.now() + 60_000 }) : lease(),
    });
    const began = performance.now();
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${CLOSE}`);
    await until(() => proxy.stats().machineConnections === 1, "an attempt");
    const left = performance.now();
    proxy.forget("m1");
    expect(parsed(await browser.ends())).toMatchObject({ status: 200 });
    expect(browser.text).toContain("back");
    expect(heads.map(({ tried }) => tried)).toEqual([[], []]);
    // A start since the request came was for it, also if the machine runs again by now.
    expect(heads.map(({ since }) => since)).toEqual([undefined, expect.any(Number)]);
    expect(heads[1]?.since).toBeGreaterThanOrEqual(began);
    expect(heads[1]?.since).toBeLessThanOrEqual(left);
    expect(outcomes).toEqual([{ error: "machine_left" }, { status: 200, error: undefined }]);
  });

  test("ends when the client leaves", async () => {
    const port = await freePort();
    const { client, outcomes, proxy } = await rig({
      leaseFor: async (_request, _signal, lease) => lease({ port, connectDeadline: performance.now() + 60_000 }),
    });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => proxy.stats().machineConnections === 1, "an attempt");
    browser.socket.destroy();
    await until(() => outcomes.length === 1 && proxy.stats().machineConnections === 0, "the end of the attempts");
  });

  test("is bounded for each machine: 503", async () => {
    const app = await httpApp(() => {});
    const { client, ask } = await rig({ app, limits: { machineConnections: 1 } });
    (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => app.open.size === 1, "the first request to be there");
    const reply = parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`));
    expect(reply.status).toBe(503);
    expect(reply.headers.get("retry-after")).toBe("1");
  });
});

describe("forget", () => {
  test("closes idle connections at once, and a busy one after its response", async () => {
    const answers: (() => void)[] = [];
    const app = await httpApp((_request, response) => void answers.push(() => response.end("ok")));
    const { client, proxy } = await rig({ app });
    const [first, second] = [await client(), await client()];
    first.send(`GET / HTTP/1.1\r\n${KEEP}`);
    second.send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => answers.length === 2, "both requests");
    answers[0]?.();
    await until(() => proxy.stats().idleMachineConnections === 1, "an idle connection");
    proxy.forget("m1");
    await until(() => app.open.size === 1, "the idle connection to close");
    answers[1]?.();
    await Promise.all([first.sees("ok"), second.sees("ok")]);
    await until(() => app.open.size === 0, "the busy connection to close");
    first.text = "";
    first.send(`GET / HTTP/1.1\r\n${KEEP}`);
    await until(() => answers.length === 3, "a request after it");
    answers[2]?.();
    await first.sees("ok");
    expect(app.accepted).toBe(3);
    proxy.forget("unknown");
  });

  test("a machine that has ended: who may ask again waits for a machine again, everybody else hears of it at once", async () => {
    const silent: string[] = [];
    let ended = false;
    const app = await httpApp(({ method = "" }, response) => {
      if (ended) response.end("back");
      else silent.push(method);
    });
    const { client, heads, proxy } = await rig({ app });
    const [reader, writer] = [await client(), await client()];
    reader.send(`GET / HTTP/1.1\r\n${CLOSE}`);
    writer.send(`POST / HTTP/1.1\r\nContent-Length: 2\r\n${CLOSE}hi`);
    await until(() => silent.length === 2, "both requests");
    ended = true;
    proxy.forget("m1", true);
    expect(parsed(await reader.ends())).toMatchObject({ status: 200 });
    expect(reader.text).toContain("back");
    const refused = parsed(await writer.ends());
    expect(refused.status).toBe(502);
    expect(JSON.parse(refused.body)).toMatchObject({
      error: "upstream_closed",
      message: expect.stringContaining("The machine ended before the app answered."),
    });
    expect(heads.map(({ tried }) => tried)).toEqual([[], [], []]);
  });

  test("a request that ends every machine is not repeated forever", async () => {
    let asked = 0;
    const app = await httpApp(() => {
      asked += 1;
      setImmediate(() => proxy.forget("m1", true));
    });
    const { ask, proxy } = await rig({ app, limits: { tries: 3 } });
    expect(parsed(await ask(`GET / HTTP/1.1\r\n${CLOSE}`)).status).toBe(502);
    expect(asked).toBe(3);
  });
});
