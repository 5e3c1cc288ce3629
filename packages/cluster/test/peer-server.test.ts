/** What another host may keep a connection to the peer port for, and for how long. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { FRAMES, frame, framesOf } from "../src/moves/frames.ts";
import { type PeerPatience, PeerServer } from "../src/peer-server.ts";

/** Nothing ends in this time. */
const NEVER_MS = 3_600_000;

/** Reads a whole body as text. What ends the connection ends the body, too. */
function whole(request: IncomingMessage): Promise<string | undefined> {
  return text(request).catch(() => undefined);
}

/** Reads frames up to the last one and leaves what follows, as the host that a machine moves to does. */
async function untilLastFrame(request: IncomingMessage): Promise<string> {
  for await (const { type } of framesOf(request as AsyncIterable<Buffer>)) if (type === FRAMES.end) break;
  return "all frames";
}

/** A connection to a server that answers with the body that it got. */
async function connection(patience: Partial<PeerPatience>, { answerMs = 0, read = whole } = {}): Promise<Socket> {
  const server = new PeerServer({ headMs: NEVER_MS, idleMs: NEVER_MS, bodyMs: NEVER_MS, ...patience });
  server.add(async (request, response) => {
    const body = await read(request);
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

it.each([true, false])(
  "lets a machine that has moved be stored and checked for long after its last frame (the body's end came along: %s)",
  async (along) => {
    const client = await connection({ bodyMs: 50, idleMs: 20 }, { answerMs: 300, read: untilLastFrame });
    const last = frame(FRAMES.end, Buffer.from("{}"));
    const body = Buffer.concat([frame(FRAMES.data, Buffer.alloc(1000)), last]);
    client.write("POST / HTTP/1.1\r\nhost: b\r\ntransfer-encoding: chunked\r\n\r\n");
    const chunk = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")]);
    const end = Buffer.from("0\r\n\r\n");
    client.write(along ? Buffer.concat([chunk, end]) : chunk);
    if (!along) setTimeout(() => client.write(end), 20);
    expect(await untilClosed(client)).toContain("got all frames");
  },
);
