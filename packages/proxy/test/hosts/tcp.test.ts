/** TCP connections at one host, for machines of another host. */
import type { Socket } from "node:net";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { RawClient, until } from "../http/helpers.ts";
import { APP, startHosts } from "./hosts-world.ts";

/** A machine of host b with a TCP service, which sleeps, and its port at host a. */
async function asleep(onConnection: (socket: Socket) => void) {
  const [a, b] = await startHosts("a", "b");
  const port = await freePort();
  const service = { protocol: "tcp" as const, ports: [{ port }] };
  const { id } = await b.machine(() => {}, { service, onConnection });
  await b.suspend(id);
  await a.hears(id, "suspended");
  await a.openTcp(port);
  return { a, b, id, port };
}

function client(port: number): RawClient {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  return new RawClient(socket);
}

test("a connection wakes its machine, carries bytes both ways, and ends one direction at a time", async () => {
  const { a, b, id, port } = await asleep((socket) => {
    let bytes = 0;
    socket.write("hello ");
    socket.on("data", (piece: Buffer) => (bytes += piece.length));
    socket.on("end", () => socket.end(`${bytes} bytes`));
  });
  const one = client(port).send("early ");
  await one.sees("hello ");
  expect(b.state(id)).toBe("running");
  await until(() => b.proxies.load(id) === 1, "the connection to count");
  one.send(Buffer.alloc(3_000_000, "x"));
  one.socket.end();
  expect(await one.ends()).toBe("hello 3000006 bytes");
  expect(one.ending).toBe("end");
  await until(() => a.log.length === 1, "the log's line");
  expect(a.log[0]).toMatchObject({ method: "TCP", appName: APP, machineId: id, bytesIn: 3_000_006, error: undefined });
  expect(a.log[0]?.wake?.kind).toBe("resume");
  await until(() => b.proxies.load(id) === 0, "the connection to be over");
});

test("a large answer arrives whole at a client that reads slowly", async () => {
  const { port } = await asleep((socket) => socket.end(Buffer.alloc(8_000_000, "y")));
  const one = client(port);
  await until(() => one.text.length > 0, "the first bytes");
  one.socket.pause();
  await new Promise((resolve) => setTimeout(resolve, 50));
  one.socket.resume();
  await one.ends();
  expect([one.text.length, one.ending]).toEqual([8_000_000, "end"]);
});

test("a connection that the app breaks off does not look whole to the client, nor the other way around", async () => {
  const seen: string[] = [];
  const { port } = await asleep((socket) => {
    socket.on("error", () => seen.push("reset")).on("end", () => seen.push("end"));
    socket.once("data", (piece: Buffer) => {
      if (String(piece) === "break") socket.resetAndDestroy();
      else socket.write("ready");
    });
  });
  const broken = client(port).send("break");
  await broken.ends();
  expect(broken.ending).toBe("reset");
  const breaking = client(port).send("hello");
  await breaking.sees("ready");
  breaking.socket.resetAndDestroy();
  await until(() => seen.length > 0, "the app to notice");
  expect(seen).toEqual(["reset"]);
});

test("a host that is away: the client is cut off, and so are those that were connected", async () => {
  const { a, b, port } = await asleep((socket) => void socket.write("ready"));
  const one = client(port);
  await one.sees("ready");
  await b.away();
  await a.hearsAway("b");
  await one.ends();
  expect(one.ending).toBe("reset");
  const two = client(port);
  await two.ends();
  expect(two.ending).toBe("reset");
  await until(() => a.log.length === 2, "the log's lines");
  expect(a.log.at(-1)).toMatchObject({ error: "host_unreachable" });
});
