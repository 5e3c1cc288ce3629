/** A client of HTTP/2 that begins requests only to cancel them: over a real connection, frame by frame (RFC 9113). */
import { once } from "node:events";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { httpApp, type Rig, until } from "./helpers.ts";
import { secured } from "./secured.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const [HEADERS, RST_STREAM, SETTINGS, GOAWAY] = [1, 3, 4, 7];
const END_STREAM_AND_HEADERS = 5;
const ENHANCE_YOUR_CALM = 11;
const CANCEL = Buffer.from([0, 0, 0, 8]);
/** GET / over https from shop.test, in HPACK. */
const HEAD = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 9]), Buffer.from("shop.test")]);

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A connection that sends what it is told, and reads the frames that come. */
async function dial({ port }: Rig) {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  onTestFinished(() => void socket.destroy());
  const seen: { type: number; code: number }[] = [];
  let [bytes, closed] = [Buffer.alloc(0), false];
  socket.on("error", () => {}).on("close", () => (closed = true));
  socket.on("data", (piece) => {
    bytes = Buffer.concat([bytes, piece]);
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      seen.push({ type: bytes[3] ?? 0, code: bytes[3] === GOAWAY ? bytes.readUInt32BE(13) : 0 });
      bytes = bytes.subarray(9 + bytes.readUIntBE(0, 3));
    }
  });
  await once(socket, "secureConnect");
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
  let stream = -1;
  const cancel = (count: number) => {
    const frames = Array.from({ length: count }, () => {
      stream += 2;
      return [frame(HEADERS, END_STREAM_AND_HEADERS, stream, HEAD), frame(RST_STREAM, 0, stream, CANCEL)];
    });
    socket.write(Buffer.concat(frames.flat()));
  };
  const goaway = () => seen.find(({ type }) => type === GOAWAY)?.code;
  return { cancel, goaway, closed: () => closed };
}

const silent = () => httpApp((request) => void request.on("error", () => {}).resume());

test("a client that cancels one request after the other is sent away", async () => {
  const rig = await secured(await silent(), { cancels: { burst: 20, perSecond: 1 } });
  const client = await dial(rig);
  // They fit into one record of TLS, and so arrive together.
  client.cancel(400);
  await until(() => client.closed(), "the connection to be closed");
  expect(client.goaway()).toBe(ENHANCE_YOUR_CALM);
  expect(rig.heads.length).toBeLessThanOrEqual(21);
  expect(rig.log.every(({ error }) => error === "client_gone")).toBe(true);
});

test("cancels that are few for their time, and those of a trusted proxy, end nothing", async () => {
  const limits = { cancels: { burst: 20, perSecond: 100_000 } };
  const [slow, trusted] = [
    await secured(await silent(), limits),
    await secured(await silent(), limits, { trustedProxies: ["127.0.0.1"] }),
  ];
  const [client, proxy] = [await dial(slow), await dial(trusted)];
  for (let turn = 1; turn <= 10; turn += 1) {
    client.cancel(15);
    await until(() => slow.log.length === turn * 15, "the requests to end");
  }
  proxy.cancel(400);
  await until(() => trusted.log.length === 400, "the proxy's requests to end");
  expect([client.goaway(), proxy.goaway(), client.closed(), proxy.closed()]).toEqual([
    undefined,
    undefined,
    false,
    false,
  ]);
});
