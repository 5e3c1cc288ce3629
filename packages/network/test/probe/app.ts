/**
 * The app of a machine in the network's tests: hears datagrams, tries what it is told, holds a connection open. It
 * answers at a socket in its file system, too, because tests break its network.
 */
import { createSocket } from "node:dgram";
import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { json } from "node:stream/consumers";
import { type Try, tryOne } from "./try.ts";

/** What became of the connection that is held. */
interface Held {
  echoed: number;
  failedAt: number | null;
  error: string | null;
}

/** As an app with work to do, it writes all the time. */
const HEARTBEAT_MS = 100;

/** Datagrams that came, as `text from address`. */
const heard: string[] = [];
createSocket("udp4")
  .on("message", (text, { address }) => heard.push(`${String(text)} from ${address}`))
  .bind(9000);

let held: Held = { echoed: 0, failedAt: null, error: null };

function hold(host: string, port: number): void {
  const socket = connect(port, host);
  const mine: Held = { echoed: 0, failedAt: null, error: null };
  const failed = (error: string) => {
    clearInterval(timer);
    mine.failedAt ??= Date.now();
    mine.error ??= error;
  };
  const timer = setInterval(() => socket.write("."), HEARTBEAT_MS);
  socket.on("data", (chunk) => {
    mine.echoed += chunk.length;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => failed(error.code ?? error.message));
  socket.on("close", () => failed("closed"));
  held = mine;
}

async function answer(request: IncomingMessage): Promise<unknown> {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://machine");
  if (pathname === "/try") return Promise.all(((await json(request)) as Try[]).map(tryOne));
  if (pathname === "/hold") hold(searchParams.get("host") ?? "", Number(searchParams.get("port")));
  return { id: process.env.HIBERNAUT_MACHINE_ID, heard, held };
}

for (const at of [8080, "/run/probe.sock"]) {
  createServer((request, response) => {
    response.setHeader("connection", "close");
    void answer(request).then((found) => response.end(JSON.stringify(found)));
  }).listen(at);
}
