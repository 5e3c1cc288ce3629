/** A database that sleeps until something connects: TCP services on real guests. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Machine } from "@hibernaut/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { freePort } from "../../../../scripts/lib/free-port.mjs";

let place: Place;
/** With a shell and Node, for what a machine tries. */
let image: string;
let port: number;
let id: string;
beforeAll(async () => {
  [place, image, port] = await Promise.all([Place.open(), shellImage(), freePort()]);
  ({ machine_id: id } = await place.machine(config(port)));
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** The small app: counts the lines of all connections in its memory, and answers each with the count and the line. */
const COUNTER = ["--port", "9000", "--lines", ""];

const config = (tcp: number): Partial<Machine["config"]> => ({
  image: SMALL_APP,
  init: { cmd: COUNTER },
  services: [{ protocol: "tcp", internal_port: 9000, ports: [{ port: tcp }], autostop: "suspend" }],
});

/** Sends a line and returns the program's. */
async function say(socket: Socket, line: string): Promise<string> {
  socket.write(`${line}\n`);
  return String((await once(socket, "data"))[0]).trimEnd();
}

async function dial(): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}

test("a connection wakes its machine, which continues to count where it was", async () => {
  const first = await dial();
  expect(await say(first, "awake")).toBe("1 awake");
  first.end();
  expect(String((await once(first, "data"))[0])).toBe("bye\n");
  for (let cycle = 2; cycle < 5; cycle += 1) {
    await place.suspend(id);
    const socket = await dial();
    expect(await say(socket, "again")).toBe(`${cycle} again`);
    socket.destroy();
  }
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
});

test("many at once wake it once, and each gets its own answers", { tags: "again" }, async () => {
  await place.suspend(id);
  const sockets = await Promise.all(Array.from({ length: 20 }, dial));
  const answers = await Promise.all(sockets.map((socket, index) => say(socket, `line ${index}`)));
  expect(answers.map((answer) => answer.replace(/^\d+ /, ""))).toEqual(sockets.map((_, index) => `line ${index}`));
  for (const socket of sockets) socket.destroy();
  const starts = (await place.client.listMachineEvents(place.app, id, { limit: 3 })).filter(
    ({ type }) => type === "started",
  );
  expect(starts).toHaveLength(1);
});

test("an open connection keeps it awake, and survives a suspend by hand: what is sent next wakes it", async (context) => {
  if ((await place.client.getHealth()).network.mode !== "bridge") return context.skip();
  const socket = await dial();
  expect(await say(socket, "before")).toMatch(/before$/);
  await place.suspend(id);
  expect(await say(socket, "after")).toMatch(/after$/);
  // The guest may answer a moment before its machine is said to be running.
  await place.reach(id, "running");
  socket.destroy();
});

test("with idle = quiet, a pool of silent connections sleeps and wakes with its machine", {
  tags: "again",
}, async (context) => {
  if ((await place.client.getHealth()).network.mode !== "bridge") return context.skip();
  const services = (config(port).services ?? []).map((one) => ({ ...one, idle: "quiet" as const, idle_timeout: 1 }));
  await place.client.updateMachine(place.app, id, { ...config(port), image: SMALL_APP, services });
  await place.reach(id, "running");
  const pool = await Promise.all(Array.from({ length: 10 }, dial));
  for (const socket of pool) expect(await say(socket, "hello")).toMatch(/hello$/);
  for (let cycle = 0; cycle < 3; cycle += 1) {
    await place.reach(id, "suspended");
    const answers = await Promise.all(pool.map((socket, index) => say(socket, `${cycle} ${index}`)));
    const counts = answers.map((answer) => Number(answer.split(" ")[0])).sort((a, b) => a - b);
    expect(counts).toEqual(pool.map((_, index) => 11 + cycle * pool.length + index));
  }
  expect(pool.every((socket) => socket.readyState === "open")).toBe(true);
  for (const socket of pool) socket.destroy();
});

test("a machine of the app wakes it by name, and one of another app is not let in", async (context) => {
  if ((await place.client.getHealth()).network.mode !== "bridge") return context.skip();
  const sleeper = { image, init: { cmd: ["-c", "exec sleep 3600"] }, services: [] };
  const { machine_id: web } = await place.machine(sleeper);
  await place.client.createApp("guest");
  const { machine_id: stranger } = await place.client.createMachine("guest", { config: sleeper });
  await place.client.waitForMachine("guest", stranger, { timeout: 60 });
  await place.suspend(id);
  const ask = `const socket = require("net").connect(${port}, "${place.app}.flycast", () => socket.write("inside\\n"));
    socket.on("data", (line) => { console.log(String(line).trim()); process.exit(); });
    socket.on("error", ({ code }) => { console.log(code); process.exit(); });`;
  const from = async (app: string, machine: string) =>
    (await place.client.runExec(app, machine, { command: ["node", "-e", ask], timeout: 60 })).stdout.trim();
  expect(await from("guest", stranger)).toBe("ECONNRESET");
  expect((await place.get(id)).state).toBe("suspended");
  expect(await from(place.app, web)).toMatch(/^\d+ inside$/);
  await place.client.destroyMachine(place.app, web, { force: true });
  await place.client.destroyApp("guest", { force: true });
});

test("a port leads to one app: another one is refused, and may have it once it is free", {
  tags: "again",
}, async () => {
  await place.client.createApp("other");
  const refused = place.client.createMachine("other", { config: { image: SMALL_APP, ...config(port) } });
  await expect(refused).rejects.toMatchObject({
    code: "already_exists",
    message: expect.stringMatching(new RegExp(`^Port ${port} belongs to app ${place.app}`)),
  });
  await place.client.destroyMachine(place.app, id, { force: true });
  await place.reach(id, "destroyed");
  const { machine_id: next } = await place.client.createMachine("other", {
    config: { image: SMALL_APP, ...config(port) },
  });
  await place.client.waitForMachine("other", next, { timeout: 60 });
  const socket = await dial();
  expect(await say(socket, "mine now")).toBe("1 mine now");
  socket.destroy();
  await place.client.destroyApp("other", { force: true });
});
