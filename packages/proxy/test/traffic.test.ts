/** Traffic: what proxies count between clients and machines, and report to the platform. */
import { describe, expect, test } from "vitest";
import type { FromProxy } from "../src/messages.ts";
import { TrafficReporter } from "../src/traffic-reporter.ts";
import { type App, CLOSE, echoApp, httpApp, KEEP, rig } from "./http/helpers.ts";
import { acquireAt, request, useProxyWorld, w } from "./proxy-world.ts";

/** A proxy in front of the app, and the bytes that its leases were told of. */
async function counting(app: App) {
  const moved = { in: 0, out: 0 };
  const count = (bytesIn: number, bytesOut: number) => {
    moved.in += bytesIn;
    moved.out += bytesOut;
  };
  return { ...(await rig({ app, leaseFor: async (_request, _signal, lease) => lease({ moved: count }) })), moved };
}

describe("what is counted", () => {
  test("are the bodies of a request and its response, without heads and framing", async () => {
    const app = await httpApp((incoming, response) => {
      incoming.resume().on("end", () => response.end("twelve bytes"));
    });
    const { ask, log, moved } = await counting(app);
    await ask(`POST / HTTP/1.1\r\nContent-Length: 5\r\n${CLOSE.replace("\r\n\r\n", "\r\n\r\nhello")}`);
    expect(moved).toEqual({ in: 5, out: 12 });
    expect(log).toMatchObject([{ bytesIn: 5, bytesOut: 12 }]);
  });

  test("are all bytes of an upgraded connection, as they pass", async () => {
    const { client, moved } = await counting(await echoApp());
    const browser = (await client()).send(`GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n${KEEP}`);
    await browser.sees("101 Switching");
    await browser.send("first ").sees("first ");
    await browser.send("second").sees("second");
    // The connection is still open: one that lasts for days is counted all the time.
    expect(moved).toEqual({ in: 12, out: 12 });
    browser.socket.end();
    await browser.ends();
  });
});

describe("what is reported", () => {
  useProxyWorld();

  test("is what all proxies forwarded, by machine, once", async () => {
    const id = await w.machine();
    const other = await w.anotherProxy();
    const one = await w.acquire();
    const two = await acquireAt(other.broker, request());
    one.moved?.(1, 10);
    one.moved?.(2, 20);
    two.moved?.(4, 40);
    await w.settled();
    await w.settled();
    expect(w.traffic).toEqual([
      [id, { bytesIn: 3, bytesOut: 30 }],
      [id, { bytesIn: 4, bytesOut: 40 }],
    ]);
    one.release({});
    two.release({});
  });

  test("includes what is left when a proxy closes", async () => {
    const id = await w.machine();
    const lease = await w.acquire();
    lease.moved?.(5, 0);
    lease.release({});
    w.proxies.pop()?.close();
    await w.settled();
    await Promise.resolve();
    expect(w.traffic).toEqual([[id, { bytesIn: 5, bytesOut: 0 }]]);
  });
});

test("while the platform is away, traffic is counted, and reported when it is back", () => {
  const sent: FromProxy[] = [];
  const reporter = new TrafficReporter({ send: (message) => void sent.push(message) });
  reporter.moved("a", 1, 2);
  reporter.flush();
  expect(sent).toEqual([]);
  reporter.connected();
  reporter.disconnected();
  reporter.moved("a", 4, 0);
  reporter.moved("b", 8, 0);
  reporter.flush();
  reporter.connected();
  reporter.close();
  expect(sent).toEqual([
    { kind: "traffic", moved: { a: { bytesIn: 1, bytesOut: 2 } } },
    { kind: "traffic", moved: { a: { bytesIn: 4, bytesOut: 0 }, b: { bytesIn: 8, bytesOut: 0 } } },
  ]);
});
