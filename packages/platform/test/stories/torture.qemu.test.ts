/**
 * Clients at random moments, machines that fall asleep after a second, suspends and forks out of the blue, a long
 * download and WebSockets among them: not one request fails, is lost, doubled or cut. `HIBERNAUT_TORTURE_S` sets for how long.
 *
 * @module-tag again
 */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Machine } from "@hibernaut/client";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { longOr } from "../helpers/long.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { Place, WARM } from "../helpers/served.ts";

const SECONDS = Number(process.env.HIBERNAUT_TORTURE_S ?? longOr(40, 12));
/** Create, start, started. */
const FIRST_EVENTS = 3;
const CLIENTS = 6;
const SOCKETS = 2;
const PIECE = "hibernaut ";
const DOWNLOAD_BYTES = 1_500_000;
/** Only a fault reaches it: two boots, all that, and the last sleep, on a busy host. */
const LIMIT_MS = SECONDS * 1000 + 165_000;

const place = Place.forTests({
  ...WARM,
  HIBERNAUT_IDLE_CHECK_INTERVAL: "1",
  HIBERNAUT_LOG_LEVEL: process.env.HIBERNAUT_LOG_LEVEL ?? "warn",
});

/** Counts every request by its id, streams slowly, and echoes what comes over a WebSocket. */
const APP = `
const { createServer } = require("http");
const { createHash } = require("crypto");
const seen = {};
const server = createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  if (url.pathname === "/seen") return response.end(JSON.stringify(seen));
  if (url.pathname === "/download") {
    let left = Number(url.searchParams.get("bytes"));
    const more = () => {
      if (left <= 0) return response.end();
      const piece = Buffer.alloc(Math.min(left, 60000), "${PIECE}");
      left -= piece.length;
      response.write(piece, () => setTimeout(more, 40));
    };
    return more();
  }
  const id = url.searchParams.get("id");
  seen[id] = (seen[id] ?? 0) + 1;
  setTimeout(() => response.end(id), Number(url.searchParams.get("ms")));
});
server.on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  let rest = Buffer.alloc(0);
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 6) {
      const length = rest[1] & 127; // short messages only
      if (rest.length < 6 + length) return;
      if ((rest[0] & 15) === 8) return socket.end(Buffer.from([0x88, 0]));
      const text = Buffer.from(rest.subarray(6, 6 + length).map((byte, i) => byte ^ rest[2 + (i % 4)]));
      socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
      rest = rest.subarray(6 + length);
    }
  });
});
server.listen(8080);
`;

/** Of every period the clients leave the last part to the machines, which fall asleep in it. */
const PERIOD_MS = 9000;
const CALM_MS = 4000;

const pause = (most: number) => delay(randomInt(1, most));

test(`nothing fails, is lost, doubled or cut in ${SECONDS} s of sleeping and waking`, {
  timeout: LIMIT_MS,
}, async () => {
  const sleepy = { autostop: "suspend" as const, idle_timeout: 1 };
  const service = { internal_port: 8080, ...sleepy, concurrency: { soft_limit: 4 } };
  const config = { image: COUNTER_IMAGE, init: { cmd: ["-e", APP] }, services: [service] };
  // One wakes warm, the other from its snapshot.
  const machines = await Promise.all([
    place.machine(config),
    place.machine({ ...config, services: [{ ...service, keep_warm: 0 }] }),
  ]);
  const target = { proxyUrl: place.proxyUrl, app: place.app };
  const tally = {
    ...{ sent: [] as string[], faults: [] as string[], wakes: {} as Record<string, number> },
    ...{ echoes: 0, downloads: 0, suspends: 0, forks: 0 },
  };
  const end = performance.now() + SECONDS * 1000;
  const going = () => performance.now() < end;
  const began = performance.now();
  const calm = async () => {
    const into = (performance.now() - began) % PERIOD_MS;
    if (into > PERIOD_MS - CALM_MS) await delay(PERIOD_MS - into + randomInt(1, 300));
  };
  const guarded = async (what: string, work: () => Promise<void>) => {
    while (going()) await work().catch((error: unknown) => void tally.faults.push(`${what}: ${String(error)}`));
  };

  let number = 0;
  const client = async () => {
    const id = `r${(number += 1)}`;
    tally.sent.push(id);
    const answer = await ask(target, `/work?id=${id}&ms=${randomInt(0, 150)}`);
    const { kind } = wakeOf(answer);
    tally.wakes[kind] = (tally.wakes[kind] ?? 0) + 1;
    if (answer.status !== 200 || answer.text !== id) tally.faults.push(`${id}: ${answer.status} ${answer.text}`);
    await pause(400);
    await calm();
  };
  const downloader = async () => {
    const { text } = await ask(target, `/download?bytes=${DOWNLOAD_BYTES}`);
    if (text !== PIECE.repeat(DOWNLOAD_BYTES / PIECE.length))
      tally.faults.push(`a download of ${text.length} bytes differs`);
    tally.downloads += 1;
    await pause(3000);
    await calm();
  };
  const socket = async () => {
    await echoes(target, going, tally);
    await calm();
  };
  const anyone = () => machines[randomInt(machines.length)]?.machine_id ?? "";
  // It fell asleep, or woke, by itself in the meantime.
  const tooLate = (error: Error & { code: string }) => {
    if (!["aborted", "failed_precondition"].includes(error.code)) throw error;
  };
  const suspender = async () => {
    await pause(2500);
    const id = anyone();
    if ((await place.get(id)).state !== "running") return;
    await place.client.suspendMachine(place.app, id).catch(tooLate);
    tally.suspends += 1;
  };
  const forker = async () => {
    await pause(2500);
    const id = anyone();
    const [fork] =
      (await place.client.forkMachine(place.app, id, { skip_service_registration: true }).catch(tooLate)) ?? [];
    if (fork === undefined) return;
    await place.reach(fork.id, "running", "failed");
    // It gets no requests, so that it knows what its parent had seen.
    const inherited = await seenBy(fork);
    if (Object.values(inherited).some((count) => count !== 1))
      tally.faults.push(`a fork saw ${JSON.stringify(inherited)}`);
    const { last_boot: boot } = await place.get(fork.id);
    if (boot?.kind !== "resume") tally.faults.push(`a fork of ${id} started ${boot?.kind}: ${boot?.reason}`);
    await place.client.destroyMachine(place.app, fork.id, { force: true });
    tally.forks += 1;
  };
  await Promise.all([
    ...Array.from({ length: CLIENTS }, () => guarded("client", client)),
    ...Array.from({ length: SOCKETS }, () => guarded("socket", socket)),
    guarded("download", downloader),
    guarded("suspend", suspender),
    guarded("fork", forker),
  ]);
  // In a short run, or on a busy host, something may have been awake at any moment. Now nothing keeps them awake.
  for (const { machine_id: id } of machines) await place.reach(id, "suspended");
  await client();

  for (const { machine_id: id } of machines) {
    const events = await place.client.listMachineEvents(place.app, id, { limit: 1000 });
    // Whatever else went well: a machine that was started from scratch once more has lost its memory.
    const again = events.slice(0, -FIRST_EVENTS).findIndex(({ details }) => details.kind === "cold");
    if (again >= 0) tally.faults.push(`cold start of ${id}: ${JSON.stringify(events.slice(again, again + 8))}`);
  }
  const seen: Record<string, number> = {};
  for (const machine of machines) {
    const { machine_id: id } = machine;
    // The proxy does not see who asks at its address: the machine could fall asleep with that.
    await place.client.cordonMachine(place.app, id);
    if ((await place.get(id)).state !== "running") await place.start(id);
    for (const [request, count] of Object.entries(await seenBy(machine))) seen[request] = (seen[request] ?? 0) + count;
  }
  process.stderr.write(`torture: ${JSON.stringify({ ...tally, sent: tally.sent.length })}\n`);
  expect(tally.faults).toEqual([]);
  expect(Object.entries(seen).filter(([, count]) => count !== 1)).toEqual([]);
  expect(Object.keys(seen).toSorted()).toEqual(tally.sent.toSorted());
  expect((tally.wakes["resume"] ?? 0) + (tally.wakes["warm"] ?? 0)).toBeGreaterThan(0);
  expect(tally.suspends).toBeGreaterThan(0);
  expect(tally.forks).toBeGreaterThan(0);
  expect(tally.downloads).toBeGreaterThan(0);
  expect(tally.echoes).toBeGreaterThan(0);
});

/** How often a machine has seen each request, asked without the proxy. */
async function seenBy({ private_address: address }: Machine): Promise<Record<string, number>> {
  // The next fork may get the address, and knows nothing of a connection that is kept.
  const reply = await fetch(`http://${address}:8080/seen`, { headers: { connection: "close" } });
  return (await reply.json()) as Record<string, number>;
}

/** One WebSocket: numbered messages with pauses long enough for a sleep in between, each echoed in its order. */
async function echoes(target: { proxyUrl: string; app: string }, going: () => boolean, tally: { echoes: number }) {
  const socket = new WebSocket(target.proxyUrl.replace("http", "ws"), { headers: { host: `${target.app}.localhost` } });
  const closed = Promise.withResolvers<Error>();
  socket.on("error", (error) => closed.resolve(error));
  socket.on("close", (code) => closed.resolve(new Error(`closed with ${code}`)));
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    void closed.promise.then(reject);
  });
  for (let message = 0; going() && message < 5; message += 1) {
    const text = `message ${message} ${randomInt(1e9)}`;
    const echo = new Promise<string>((resolve) => socket.once("message", (data) => resolve(String(data))));
    socket.send(text);
    const late = delay(60_000, new Error("no echo in 60 s"), { ref: false });
    const got = await Promise.race([echo, closed.promise, late]);
    if (got instanceof Error) throw got;
    if (got !== text) throw new Error(`sent ${text}, got ${got}`);
    tally.echoes += 1;
    await pause(1000);
  }
  socket.close();
  await closed.promise;
}
