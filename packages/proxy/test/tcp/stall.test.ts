/** TCP connections of which one side takes nothing: they end, and give their machine back. Silent ones stay. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { StallClock } from "../../src/http/tunnel-looks.ts";
import { plain, say, tcpRig } from "./tcp-rig.ts";

/** More than the kernel keeps for a connection on loopback, and the proxy on top of that. */
const MORE_THAN_FITS = Buffer.alloc(32 * 1024 * 1024, "x");
/** The shortest that the proxy can tell, as it looks every second. */
const limits = { tunnelStallMs: 1_000 };
const WAIT = { timeout: 30_000 };

test("a client that sent more than its app reads, and left, does not keep the machine", {
  timeout: 40_000,
}, async () => {
  const theirs: Socket[] = [];
  const serve = (socket: Socket) => {
    if (theirs.length === 0) return void theirs.push(socket.pause());
    theirs.push(socket);
    socket.on("data", (piece) => socket.write(piece));
  };
  const { port, log, released } = await tcpRig({ apps: { db: { serve } }, limits });
  const client = await plain(port);
  await vi.waitFor(() => expect(theirs).toHaveLength(1), WAIT);
  const silent = await plain(port);
  expect(await say(silent, "hello")).toBe("hello");
  const broken = once(client, "error");
  client.end(MORE_THAN_FITS);
  await vi.waitFor(() => expect(log).toHaveLength(1), WAIT);
  expect(log).toMatchObject([{ machineId: "db-1", error: "upstream_stalled", bytesOut: 0 }]);
  expect(released()).toBe(1);
  // What was cut short must not look whole to either of them.
  expect((await broken)[0]).toMatchObject({ code: "ECONNRESET" });
  const [app] = theirs;
  const reset = once(app as Socket, "error");
  app?.resume();
  expect((await reset)[0]).toMatchObject({ code: "ECONNRESET" });
  // Nothing waits for either side of this one, which was silent all the time.
  expect(await say(silent, "still there")).toBe("still there");
});

test("a client that does not read what its app sends is cut off", { timeout: 40_000 }, async () => {
  const theirs: Socket[] = [];
  const serve = (socket: Socket) => {
    theirs.push(socket);
    socket.write(MORE_THAN_FITS);
  };
  const { port, log, released } = await tcpRig({ apps: { db: { serve } }, limits });
  const client = (await plain(port)).pause();
  // It still sends: what passes in the other direction does not count for it.
  const talk = setInterval(() => client.write("."), 100);
  client.once("close", () => clearInterval(talk)).on("error", () => {}); // a reset
  await vi.waitFor(() => expect(log).toHaveLength(1), WAIT);
  clearInterval(talk);
  expect(log).toMatchObject([{ error: "client_stalled" }]);
  expect(released()).toBe(1);
  await vi.waitFor(() => expect(theirs[0]?.closed).toBe(true), WAIT);
});

test("only a side that takes nothing of what waits for it is stalled", () => {
  const clock = new StallClock();
  let [given, waiting] = [0, 0];
  const at = (now: number) => clock.look({ given: () => given, waiting: () => waiting }, now);
  expect(at(0), "nothing was ever sent").toBe(0);
  expect(at(1e9), "silent for days").toBe(0);
  [given, waiting] = [1000, 1000];
  expect(at(1e9 + 1), "a first piece waits").toBe(1);
  [given, waiting] = [1500, 1500];
  expect(at(1e9 + 500), "more was sent, and none of it taken").toBe(500);
  [given, waiting] = [1500, 1499];
  expect(at(1e9 + 600), "one byte was taken").toBe(0);
  [given, waiting] = [3000, 2999];
  expect(at(1e9 + 900)).toBe(300);
  [given, waiting] = [3000, 0];
  expect(at(1e9 + 1000), "all was taken").toBe(0);
  expect(at(2e9), "and nothing was sent since").toBe(0);
});
