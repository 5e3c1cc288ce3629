/** WebSocket and other protocols that begin as HTTP. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { echoApp, headApp, httpApp, KEEP, parsed, rig, SWITCHED, until } from "./helpers.ts";

const UPGRADE = "Connection: keep-alive, Upgrade\r\nUpgrade: echo\r\n";
const echo = () => echoApp("hello ");

describe("an upgrade", () => {
  test("of a WebSocket, with Node's own client", async () => {
    const frame = Buffer.concat([Buffer.from([0x81, 5]), Buffer.from("hello")]);
    const app = await httpApp(() => {});
    const server = createServer();
    server.on("upgrade", (request, socket: Socket) => {
      const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash("sha1").update(key).digest("base64");
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`);
      socket.write(`Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
      socket.write(frame);
      // A close frame is answered by one; then the server ends.
      socket.once("data", () => socket.end(Buffer.from([0x88, 0])));
    });
    await app.stop();
    server.listen(app.port, "127.0.0.1");
    await until(() => server.listening, "the app to listen");
    const { port, log } = await rig({ leaseFor: async (_r, _s, lease) => lease({ port: app.port }) });
    const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`);
    const said = await new Promise((resolve, reject) => {
      socket.addEventListener("message", (event) => resolve(event.data));
      socket.addEventListener("error", () => reject(new Error("the WebSocket failed")));
    });
    expect(said).toBe("hello");
    const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    socket.close();
    await closed;
    await until(() => log.length === 1, "the log's line");
    expect(log).toMatchObject([{ status: 101, target: "/chat", error: undefined }]);
    await new Promise((resolve) => server.close(resolve));
  });

  test("carries bytes both ways, including those that came with the heads", async () => {
    const { client, outcomes, log } = await rig({ app: await echo() });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${UPGRADE}${KEEP}early `);
    const { status, headers } = parsed(await browser.sees("hello early "));
    expect(status).toBe(101);
    expect(headers.get("upgrade")).toBe("echo");
    expect(headers.get("connection")).toBe("Upgrade");
    expect(headers.get("hibernaut-wake")).toBe("running; dur=0");
    await browser.send("\0\xff raw \r\n\r\n").sees("\0\xff raw \r\n\r\n");
    expect(outcomes).toEqual([]);
    browser.socket.end();
    expect(await browser.ends()).toContain("raw");
    expect(browser.ending).toBe("end");
    await until(() => outcomes.length === 1, "the lease to be back");
    expect(outcomes).toEqual([{ status: 101, error: undefined }]);
    expect(log).toMatchObject([{ bytesIn: 17, bytesOut: 23 }]);
  });

  test.each([
    ["client", "client_gone"],
    ["app", "upstream_broke"],
  ])("ends on both sides when the %s breaks off", async (who, error) => {
    const app = await echo();
    const { client, outcomes } = await rig({ app });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${UPGRADE}${KEEP}`);
    await browser.sees("hello");
    if (who === "client") browser.socket.resetAndDestroy();
    else for (const socket of app.open) socket.resetAndDestroy();
    await until(() => outcomes.length === 1 && app.open.size === 0, "both sides to end");
    expect(outcomes).toEqual([{ status: 101, error }]);
  });

  test("ends when nothing is sent", async () => {
    const { client, outcomes } = await rig({ app: await echo(), limits: { tunnelMs: 50 } });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${UPGRADE}${KEEP}`);
    await browser.ends();
    await until(() => outcomes.length === 1, "the lease to be back");
  });

  test("ends when the client takes nothing of what the app sends, and is open while nothing waits", async () => {
    const flood = await headApp((socket, text) => {
      socket.write(SWITCHED);
      if (text.startsWith("GET /flood ")) socket.write(Buffer.alloc(32 * 1024 * 1024, "x"));
      else socket.pipe(socket);
    });
    const { client, outcomes } = await rig({ app: flood, limits: { tunnelStallMs: 1_000 } });
    const silent = (await client()).send(`GET / HTTP/1.1\r\n${UPGRADE}${KEEP}`);
    await silent.sees("101");
    const deaf = (await client()).send(`GET /flood HTTP/1.1\r\n${UPGRADE}${KEEP}`);
    await deaf.sees("101");
    deaf.socket.pause();
    await until(() => outcomes.length === 1, "the proxy to give up");
    expect(outcomes).toEqual([{ status: 101, error: "client_stalled" }]);
    await silent.send("still here").sees("still here");
  });

  test("is cut with the proxy", async () => {
    const app = await echo();
    const { client, proxy, outcomes } = await rig({ app });
    const browser = (await client()).send(`GET / HTTP/1.1\r\n${UPGRADE}${KEEP}`);
    await browser.sees("hello");
    await proxy.close(20);
    await browser.ends();
    await until(() => outcomes.length === 1, "the lease to be back");
    expect(outcomes).toEqual([{ status: 101, error: "cut" }]);
  });
});
