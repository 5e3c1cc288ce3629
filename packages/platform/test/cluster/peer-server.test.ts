/** What another host may keep a connection to the peer port for, and for how long. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { type PeerPatience, PeerServer } from "../../src/cluster/peer-server.ts";

/** Nothing ends in this time. */
const NEVER_MS = 3_600_000;

/** A connection to a server that answers with the body that it got. */
async function connection(patience: Partial<PeerPatience>, { answerMs = 0 } = {}): Promise<Socket> {
  const server = new PeerServer({ headMs: NEVER_MS, idleMs: NEVER_MS, bodyMs: NEVER_MS, ...patience });
  server.add(async (request, response) => {
    // What ends the connection ends the body, too.
    const body = await text(request).catch(() => undefined);
    await delay(answerMs);
    if (body !== undefined) response.end(`got ${body}`);
    return true;
  });
  const port = createServer((socket) => server.accept(socket));
  port.listen(0, "127.0.0.1");
  await once(port, "listening");
  const client = connect((port.address() as { port: number }).port, "127.0.0.1");
  client.on("error", () => {});
  onTestFinished(() => {
    client.destroy();
    server.close();
    port.close();
  });
  return client;
}

/** Everything that comes until the other side closes the connection. */
async function untilClosed(client: Socket): Promise<string> {
  let heard = "";
  client.setEncoding("utf8").on("data", (piece) => (heard += piece));
  if (!client.destroyed) await new Promise((resolve) => client.once("close", resolve));
  return heard;
}

it("closes a connection on which no request comes", async () => {
  const client = await connection({ headMs: 20 });
  expect(await untilClosed(client)).toBe("");
});

it("closes a connection on which a head comes so slowly that it never ends", async () => {
  const client = await connection({ headMs: 50 });
  const dripping = setInterval(() => client.write("x"), 5);
  onTestFinished(() => clearInterval(dripping));
  client.write("POST / HTTP/1.1\r\nx: ");
  expect(await untilClosed(client)).toBe("");
});

it("closes a connection on which no further request comes", async () => {
  const client = await connection({ idleMs: 20 });
  client.write("POST / HTTP/1.1\r\nhost: b\r\ncontent-length: 3\r\n\r\none");
  expect(await untilClosed(client)).toContain("got one");
});

it("closes a connection on which a body stops coming", async () => {
  const client = await connection({ bodyMs: 20 });
  client.write("POST / HTTP/1.1\r\nhost: b\r\ncontent-length: 30\r\n\r\non");
  expect(await untilClosed(client)).toBe("");
});

it("does not mind how long its own answer takes", async () => {
  const client = await connection({ headMs: 20, bodyMs: 20, idleMs: 20 }, { answerMs: 200 });
  client.write("POST / HTTP/1.1\r\nhost: b\r\ncontent-length: 3\r\n\r\none");
  expect(await untilClosed(client)).toContain("got one");
});
