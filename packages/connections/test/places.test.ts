/** Which connections give way at the ports of a proxy: over real sockets, with a budget of a few. */
import { once } from "node:events";
import { createServer as createHttp, type RequestListener } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { httpApp, KEEP, RawClient, rig, statuses, until } from "../../proxy/test/http/helpers.ts";
import { certificate, secured } from "../../proxy/test/http/secured.ts";
import { tcpRig } from "../../proxy/test/tcp/tcp-rig.ts";
import { guardHttp } from "../src/guard.ts";

const hello = () => httpApp((request, response) => void (request.url === "/wait" || response.end("hello")));

/** Connects, and is closed before anything else. */
async function isRefused(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  await new Promise((resolve) =>
    socket
      .on("error", () => {})
      .once("close", resolve)
      .resume(),
  );
}

test("a connection with an open request keeps its place, and a kept one gives way", async () => {
  const connections = budgetOf({ clients: 3 });
  const { client } = await rig({ app: await hello(), connections });
  const [waits, kept] = [await client(), await client()];
  waits.send(`GET /wait HTTP/1.1\r\n${KEEP}`);
  await kept.send(`GET / HTTP/1.1\r\n${KEEP}`).sees("hello");
  await until(() => connections.counts.idle === 1, "the first one to be busy");
  const next = await client();
  await next.send(`GET / HTTP/1.1\r\n${KEEP}`).sees("hello");
  await kept.ends();
  expect([waits.ending, statuses(kept.text), connections.counts.shed]).toEqual([undefined, [200], 1]);
});

test("a slow head does not hold a place", async () => {
  const connections = budgetOf({ clients: 2 });
  const { client } = await rig({ app: await hello(), connections });
  const slow = (await client()).send("GET / HTTP/1.1\r\nHost: sl");
  await until(() => connections.counts.open === 1, "it to be accepted");
  await (await client()).send(`GET / HTTP/1.1\r\n${KEEP}`).sees("hello");
  await slow.ends();
});

test("a connection over what one address may have is refused while all others are in use", async () => {
  const connections = budgetOf({ perAddress: 2 });
  const { client, port } = await rig({ app: await hello(), connections });
  for (const one of [await client(), await client()]) one.send(`GET /wait HTTP/1.1\r\n${KEEP}`);
  await until(() => connections.counts.idle === 0 && connections.counts.open === 2, "both to be busy");
  await isRefused(port);
  expect(connections.counts).toMatchObject({ open: 2, shed: 0, refused: { address: 1 } });
});

test("clients of a trusted proxy and of a balancer do not count as one", async () => {
  const connections = budgetOf({ perAddress: 1 });
  const trusting = await rig({ app: await hello(), connections, trustedProxies: ["127.0.0.1"] });
  const behind = await rig({ app: await hello(), connections, balancers: ["127.0.0.1"] });
  for (const { client } of [trusting, behind])
    for (const address of ["192.0.2.1", "192.0.2.2"]) {
      const header = client === behind.client ? `PROXY TCP4 ${address} 192.0.2.9 1000 80\r\n` : "";
      (await client()).send(`${header}GET /wait HTTP/1.1\r\n${KEEP}`);
    }
  await until(() => connections.counts.open === 4 && connections.counts.idle === 0, "all four to be busy");
  const another = (await behind.client()).send(`PROXY TCP4 192.0.2.2 192.0.2.9 1001 80\r\nGET / HTTP/1.1\r\n${KEEP}`);
  expect(await another.ends()).toBe("");
  expect(connections.counts.refused).toEqual({ full: 0, address: 1 });
});

test("the machines of one app are one client, at whichever of the ports", async () => {
  const connections = budgetOf({ perAddress: 1 });
  const app = ["127.0.0.2", "127.0.0.3"];
  const { port } = await tcpRig({ apps: { shop: {} }, connections, machines: { evil: app, other: ["127.0.0.4"] } });
  const dial = (localAddress: string) => {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {}).write("hi");
    return new Promise<string>((resolve) => {
      socket.once("data", () => resolve("served")).once("close", () => resolve("refused"));
    });
  };
  const ends = [await dial("127.0.0.2"), await dial("127.0.0.3"), await dial("127.0.0.4")];
  expect(ends).toEqual(["served", "refused", "served"]);
});

test("an HTTP/2 connection gives way between its requests, not during one", async () => {
  const connections = budgetOf({ clients: 2 });
  const { port, cert } = await secured(await hello(), {}, { connections });
  const dial = async () => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: cert });
    session.on("error", () => {});
    onTestFinished(() => session.destroy());
    await once(session, "connect");
    return session;
  };
  const one = await dial();
  const waiting = one.request({ ":path": "/wait", ":authority": "shop.test" });
  waiting.on("error", () => {});
  await until(() => connections.counts.open === 1 && connections.counts.idle === 0, "the request");
  await isRefused(port);
  expect([one.destroyed, connections.counts.refused.address]).toEqual([false, 1]);
  const closed = once(one, "close");
  waiting.close();
  await until(() => connections.counts.idle === 1, "the request to end");
  const two = await dial();
  await closed;
  expect([two.destroyed, connections.counts]).toMatchObject([false, { open: 1, shed: 1 }]);
});

test("a TCP connection that has said nothing gives way, and one that has does not", async () => {
  const { port } = await tcpRig({ apps: { shop: {} }, connections: budgetOf({ clients: 4 }) });
  const dial = async (localAddress: string) => {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    socket.on("error", () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const [talks, silent] = [await dial("127.0.0.2"), await dial("127.0.0.2")];
  talks.write("hi");
  await once(talks, "data");
  const gone = once(silent, "close");
  const others = [await dial("127.0.0.3"), await dial("127.0.0.4")];
  for (const other of others) {
    other.write("hi");
    await once(other, "data");
  }
  const last = await dial("127.0.0.5");
  await gone;
  last.write("hi");
  await once(last, "data");
  expect([talks, ...others, last].map((socket) => socket.destroyed)).toEqual([false, false, false, false]);
});

test("an app gets no more connections to machines than it leaves to others", async () => {
  const connections = budgetOf({ machines: 2 });
  const { client, ask } = await rig({ app: await hello(), connections });
  (await client()).send(`GET /wait HTTP/1.1\r\n${KEEP}`);
  await until(() => connections.machines.taken === 1, "the first connection");
  const text = await ask("GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n");
  expect([statuses(text), text.includes('"overloaded"')]).toEqual([[503], true]);
});

test.each([false, true])(
  "a kept connection to the API gives way, and one with an open request does not (TLS: %s)",
  async (tls) => {
    const connections = budgetOf({ clients: 2 });
    const answer: RequestListener = ({ url }, response) => void (url === "/wait" || response.end("hello"));
    const server = tls ? createHttps(certificate("shop.test"), answer) : createHttp(answer);
    guardHttp(server, connections, tls);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const dial = async () => {
      const socket = tls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      await once(socket, tls ? "secureConnect" : "connect");
      return new RawClient(socket);
    };
    const kept = await dial();
    await kept.send(`GET / HTTP/1.1\r\n${KEEP}`).sees("hello");
    const waits = await dial();
    await kept.ends();
    waits.send(`GET /wait HTTP/1.1\r\n${KEEP}`);
    await until(() => connections.counts.idle === 0, "the request");
    await isRefused(port);
    expect([waits.ending, connections.counts.shed]).toEqual([undefined, 1]);
  },
);

test("a server without upgrades ends the connections that ask for one, and nothing else", async () => {
  const connections = budgetOf({ clients: 10 });
  const server = createHttp((_request, response) => response.end("hello"));
  guardHttp(server, connections, false);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (let client = 0; client < 50; client += 1) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    const closed = once(socket, "close");
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    // Some leave before they are answered, and without a farewell.
    if (client % 2 === 0) socket.resume();
    else setImmediate(() => socket.resetAndDestroy());
    await closed;
  }
  await until(() => connections.counts.open === 0, "their places to be free");
  server.close();
  await once(server, "close");
});
