/** Requests that an app sends on to another machine, over real sockets. */
import { describe, expect, test } from "vitest";
import { ProxyRefusal } from "../../src/contract.ts";
import { KeptBodies, piecesOf } from "../../src/http/kept-bodies.ts";
import { DEFAULT_LIMITS } from "../../src/http/limits.ts";
import { parseReplay, Replay, replaySource } from "../../src/http/replay.ts";
import {
  type App,
  CLOSE,
  echoApp,
  headApp,
  httpApp,
  KEEP,
  parsed,
  type RigOptions,
  rawApp,
  rig,
  until,
} from "./helpers.ts";

/** Gives back its name, what was asked, and the body. */
const answering = (name: string) =>
  httpApp((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => response.end(`${name} ${request.method} ${request.url} ${body}`));
  });

/** Reads the whole request, and sends it on. */
const sending = (where: string, header = "fly-replay", text = "") =>
  httpApp((request, response) => {
    request.resume().on("end", () => response.writeHead(307, { [header]: where, Location: "/wrong" }).end(text));
  });

/** A router and machines by name; a request without a destination goes to the router. */
function among(router: App, machines: Record<string, App> = {}): RigOptions {
  return {
    leaseFor: async ({ to }, _signal, lease) => {
      const machineId = to?.machineId ?? "router";
      const app = machineId === "router" ? router : machines[machineId];
      if (app === undefined) throw new ProxyRefusal(404, "unknown_machine", `no ${machineId}`);
      return lease({ machineId, appName: "shop", port: app.port });
    },
    replayTo: ({ app = "shop", machine }) => ({ from: "shop", app, machineId: machine }),
  };
}

/** The machine that answered. */
const machineOf = (text: string) => parsed(text).body.split(" ")[0];

describe("a request that is sent on", () => {
  test.each(["fly-replay", "hibernaut-replay", "FLY-Replay"])(
    "by %s is answered by the other machine",
    async (header) => {
      const { ask, log, heads, outcomes } = await rig(
        among(await sending("instance=anna;state=x=1", header, "wrong"), { anna: await answering("anna") }),
      );
      const text = await ask(`GET /a?b HTTP/1.1\r\n${CLOSE}`);
      expect(parsed(text)).toMatchObject({ status: 200, body: "anna GET /a?b " });
      expect(text).not.toMatch(/replay|wrong/i);
      expect(log).toMatchObject([{ machineId: "anna", status: 200, error: undefined }]);
      expect(heads.map(({ to, requestId }) => [to?.machineId, requestId === heads[0]?.requestId])).toEqual([
        [undefined, true],
        ["anna", true],
      ]);
      expect(outcomes).toEqual([{}, { status: 200, error: undefined }]);
    },
  );

  test("tells where it comes from, and nobody else can", async () => {
    const mirror = await httpApp((request, response) => void response.end(JSON.stringify(request.rawHeaders)));
    const app = await sending("instance=anna;state=told; ");
    const { ask } = await rig({ ...among(app, { anna: mirror }), trustedProxies: ["127.0.0.1"] });
    const forged = "Fly-Replay-Src: state=forged\r\nfly_replay_src: state=forged\r\nHibernaut-Machine: x\r\n";
    const before = Date.now() * 1000;
    const raw = JSON.parse(parsed(await ask(`GET / HTTP/1.1\r\n${forged}${CLOSE}`)).body) as string[];
    expect(raw.join()).not.toMatch(/forged|Hibernaut-Machine/);
    const [, from, time] =
      /^instance=(\w+);app=shop;t=(\d+);state=told$/.exec(raw[raw.indexOf("Fly-Replay-Src") + 1] ?? "") ?? [];
    expect(from).toBe("router");
    expect(Number(time)).toBeGreaterThanOrEqual(before);
  });

  test("has its body again: with a length, in chunks with trailers, and empty", async () => {
    const mirror = await httpApp((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      const { "content-length": length, "transfer-encoding": coding } = request.headers;
      request.on("end", () => response.end([length, coding, body, request.trailers["x-sum"]].join(",")));
    });
    const { ask, log } = await rig(among(await sending("instance=anna"), { anna: mirror }));
    const post = async (fields: string, body: string) =>
      parsed(await ask(`POST / HTTP/1.1\r\n${fields}${CLOSE}${body}`)).body;
    expect(await post("Content-Length: 5\r\n", "hello")).toBe("5,,hello,");
    expect(await post("Content-Length: 0\r\n", "")).toBe("0,,,");
    const chunks = "3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n";
    expect(await post("Transfer-Encoding: chunked\r\n", chunks)).toBe(",chunked,abcdefg,7");
    expect(await post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")).toBe(",chunked,,");
    expect(log.map(({ bytesIn }) => bytesIn)).toEqual([5, 0, 7, 0]);
  });

  test("while its body still arrives has what came before and what comes after", async () => {
    const early = await httpApp(
      (_request, response) => void response.writeHead(200, { "fly-replay": "instance=anna" }).end(),
    );
    const { client } = await rig(among(early, { anna: await answering("anna") }));
    const browser = (await client()).send(`POST / HTTP/1.1\r\nContent-Length: 12\r\n${CLOSE}before `);
    await until(() => early.accepted === 1 && early.open.size === 0, "the router to be left");
    browser.send("after");
    expect(parsed(await browser.ends()).body).toBe("anna POST / before after");
  });

  test("may be an upgrade", async () => {
    const { client, log } = await rig(among(await sending("instance=anna"), { anna: await echoApp() }));
    const browser = (await client()).send(`GET /chat HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n${KEEP}`);
    expect(parsed(await browser.sees("101 Switching")).headers.get("upgrade")).toBe("echo");
    await browser.send("to and fro").sees("to and fro");
    browser.socket.end();
    await browser.ends();
    await until(() => log.length === 1, "the log's line");
    expect(log).toMatchObject([{ machineId: "anna", status: 101, error: undefined }]);
  });

  test("leaves the router's connection for the next one, unless its answer is long", async () => {
    const short = await sending("instance=anna", "fly-replay", "ignored");
    const anna = await answering("anna");
    const first = await rig(among(short, { anna }));
    for (let count = 0; count < 3; count += 1)
      expect(machineOf(await first.ask(`GET / HTTP/1.1\r\n${CLOSE}`))).toBe("anna");
    expect(short.accepted).toBe(1);
    const long = await sending("instance=anna", "fly-replay", "x".repeat(200_000));
    const second = await rig(among(long, { anna }));
    for (let count = 0; count < 2; count += 1)
      expect(machineOf(await second.ask(`GET / HTTP/1.1\r\n${CLOSE}`))).toBe("anna");
    expect(long.accepted).toBe(2);
  });

  test("is sent on although the router breaks off its answer", async () => {
    const broken = await headApp((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nfly-replay: instance=anna\r\nContent-Length: 9\r\n\r\nhalf"),
    );
    const { ask } = await rig(among(broken, { anna: await answering("anna") }));
    expect(machineOf(await ask(`GET / HTTP/1.1\r\n${CLOSE}`))).toBe("anna");
  });

  test("may be sent on again, and requests on one connection follow each other", async () => {
    const bob = await answering("bob");
    const { client } = await rig(among(await sending("instance=anna"), { anna: await sending("instance=bob"), bob }));
    const browser = (await client()).send(
      `GET /1 HTTP/1.1\r\n${KEEP}POST /2 HTTP/1.1\r\nContent-Length: 2\r\n${CLOSE}ab`,
    );
    const text = await browser.ends();
    expect(text.match(/bob \w+ \/\d (ab)?/g)).toEqual(["bob GET /1 ", "bob POST /2 ab"]);
  });
});

describe("a request is refused", () => {
  const refusalOf = async (options: RigOptions, request = `GET / HTTP/1.1\r\n${CLOSE}`) => {
    const { ask, faults } = await rig(options);
    const { status, body } = parsed(await ask(request));
    expect(faults).toEqual([]);
    return { status, ...(JSON.parse(body) as { error: string; message: string }) };
  };

  test("whose field cannot be understood", async () => {
    const message = expect.stringMatching(/sent this request on, but `region` is not supported there\. Use instance=/);
    const refusal = await refusalOf(among(await sending("region=ams")));
    expect(refusal).toMatchObject({ status: 502, error: "replay_invalid", message });
  });

  test("whose body is too large to keep, and only then", async () => {
    const anna = await answering("anna");
    const limits = { replayBodyBytes: 1000 };
    const post = (bytes: number) => `POST / HTTP/1.1\r\nContent-Length: ${bytes}\r\n${CLOSE}${"x".repeat(bytes)}`;
    const options = { ...among(await sending("instance=anna"), { anna }), limits };
    expect(await refusalOf(options, post(1001))).toMatchObject({ status: 413, error: "replay_body_too_large" });
    const { ask } = await rig(options);
    expect(parsed(await ask(post(1000))).body).toHaveLength("anna POST / ".length + 1000);
  });

  test("whose body cannot be kept because others are", async () => {
    const options = { ...among(await sending("instance=anna")), limits: { replayKeptBytes: 100 } };
    const refusal = await refusalOf(options, `POST / HTTP/1.1\r\nContent-Length: 2\r\n${CLOSE}ab`);
    expect(refusal).toMatchObject({ status: 503, error: "overloaded" });
  });
});

test.each<[string, object | string]>([
  ["instance=web", { machine: "web" }],
  [" Instance = web ; APP=Shop;", { machine: "web", app: "shop" }],
  ["app=shop;state=a=b,c", { app: "shop", state: "a=b,c" }],
  ["instance", "`instance` is not supported there."],
  ["", "it does not say where to."],
  ["state=x", "it does not say where to."],
  ["instance=", "a name there is empty."],
  ["instance=a;instance=b", "it names `instance` twice."],
  ["instance=web;elsewhere=true", "`elsewhere` is not supported there."],
  [`${"k".repeat(99)}=1`, `\`${"k".repeat(40)}\` is not supported there.`],
])("%j is understood as %j", (text, order) => {
  const all = { app: undefined, machine: undefined, state: undefined };
  expect(parseReplay(text)).toEqual(typeof order === "string" ? order : { ...all, ...order });
});

test("a source names machine, app, time in microseconds, and the state if there is one", () => {
  const from = { appName: "shop", machineId: "m1" };
  expect(replaySource(from, undefined, 1700.5)).toBe("instance=m1;app=shop;t=1700500");
  expect(replaySource(from, "", 1)).toBe("instance=m1;app=shop;t=1000;state=");
});

test("an answer is waited for up to its limit, which is new for each", () => {
  const replay = new Replay();
  replay.begin("instance=a");
  expect([replay.drain(60, { replayDrainBytes: 100 }), replay.drain(60, { replayDrainBytes: 100 })]).toEqual([
    false,
    true,
  ]);
  replay.begin("instance=b");
  expect(replay.drain(60, { replayDrainBytes: 100 })).toBe(false);
});

describe("kept bodies", () => {
  const piece = (bytes: number) => Buffer.alloc(bytes);

  test("count until they are released, a whole one or one that became too large", () => {
    const bodies = new KeptBodies({ replayBodyBytes: 100, replayKeptBytes: 10_000 });
    let kept = bodies.keep("shop", undefined, piece(40), 40);
    kept = bodies.keep("shop", kept, piece(40), 80);
    expect(piecesOf(kept).map(({ length }) => length)).toEqual([40, 40]);
    expect(bodies.bytes).toBeGreaterThan(80);
    kept = bodies.keep("shop", kept, piece(40), 120);
    expect([kept, bodies.bytes]).toEqual([null, 0]);
    expect(bodies.keep("shop", kept, piece(1), 121)).toBeNull();
    const single = bodies.keep("shop", undefined, piece(7), 7);
    bodies.release("shop", single);
    bodies.release("shop", null);
    bodies.release("shop", undefined);
    expect(bodies.bytes).toBe(0);
  });

  test("share one limit, which single bytes cannot get around", () => {
    const bodies = new KeptBodies({ replayBodyBytes: DEFAULT_LIMITS.replayBodyBytes, replayKeptBytes: 5000 });
    let kept = bodies.keep("shop", undefined, piece(1), 1);
    let count = 1;
    while (kept !== null) kept = bodies.keep("shop", kept, piece(1), (count += 1));
    expect(count).toBeLessThan(5000 / 100);
    expect(bodies.bytes).toBe(0);
  });

  /** Keeps bodies of 1 KB for the app as long as there is room. Returns how many bytes they count. */
  function fill(bodies: KeptBodies, app: string): number {
    const before = bodies.bytes;
    while (bodies.keep(app, undefined, piece(1024), 1024) !== null) continue;
    return bodies.bytes - before;
  }

  test("of one app leave as much room as they take, whatever others do, and all stay within the limit", () => {
    const limit = 10 * 1024 * 1024;
    const bodies = new KeptBodies({ replayBodyBytes: limit, replayKeptBytes: limit });
    const taken = Array.from({ length: 8 }, (_, at) => fill(bodies, `app-${at}`));
    expect(taken[0]).toBeCloseTo(limit / 2, -5);
    expect(taken[1]).toBeCloseTo(limit / 4, -5);
    expect(taken[2]).toBeCloseTo(limit / 8, -5);
    // One that comes last still has room for several.
    expect(taken[7]).toBeGreaterThan(10 * 1024);
    expect(bodies.bytes).toBeLessThanOrEqual(limit);
  });

  test("of an app that is flooded do not keep another app's requests from being sent on", async () => {
    const [router, anna, silent] = [
      await sending("instance=anna"),
      await answering("anna"),
      await rawApp((socket) => void socket.resume()),
    ];
    const { ask, client } = await rig({
      limits: { replayBodyBytes: 10_000, replayKeptBytes: 100_000 },
      leaseFor: async ({ host, to }, _signal, lease) => {
        if (host === "flooded.test") return lease({ machineId: "silent", appName: "flooded", port: silent.port });
        const app = to === undefined ? router : anna;
        return lease({ machineId: to?.machineId ?? "router", appName: "shop", port: app.port });
      },
      replayTo: ({ machine }) => ({ from: "shop", app: "shop", machineId: machine }),
    });
    const post = (host: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9000\r\n`;
    const flood = await Promise.all(
      Array.from({ length: 20 }, async () => (await client()).send(`${post("flooded.test")}\r\n${"x".repeat(9000)}`)),
    );
    await until(() => silent.open.size === 20, "the flood to arrive");
    const sent = await ask(`${post("shop.test")}Connection: close\r\n\r\n${"y".repeat(9000)}`);
    expect(parsed(sent)).toMatchObject({ status: 200, body: `anna POST / ${"y".repeat(9000)}` });
    for (const { socket } of flood) socket.destroy();
    await until(() => silent.open.size === 0, "the flood to be over");
  });
});
