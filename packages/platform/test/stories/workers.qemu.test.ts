/**
 * A program of others that waits for jobs, asleep: what a worker is told at its wakes, on real guests.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { redisImage } from "../helpers/projects/images.ts";
import { Place } from "../helpers/served.ts";
import { waitS } from "../helpers/slow.ts";

const QUEUE = "shop-queue";
const WORKER = "shop-worker";
/** On a busy host, a guest may need seconds until its first byte: a worker that sleeps before has asked for nothing. */
const IDLE_S = 10;
/** A cold start of the worker, its idle time and its suspend. */
const AGAIN = { timeout: waitS(60) * 1000, interval: 500 };

const place = Place.forTests({ HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
const port = await freePort();
let worker: string;

beforeAll(async () => {
  const { client } = place;
  const image = await redisImage();
  await client.createApp(QUEUE, { network: "shop", aliases: ["queue"] });
  await client.createApp(WORKER, { network: "shop" });
  const sleep = { autostop: "suspend", idle: "quiet", idle_timeout: 2 } as const;
  const queue = await client.createMachine(QUEUE, {
    config: { image, services: [{ protocol: "tcp", internal_port: 6379, ports: [{ port }], ...sleep }] },
  });
  await client.waitForMachine(QUEUE, queue.machine_id, { timeout: waitS(60) });
  // It ends after each job and whenever its connection does, and is started again.
  const init = { entrypoint: ["redis-cli"], cmd: ["-h", "queue", "BRPOP", "jobs", "0"] };
  ({ machine_id: worker } = await client.createMachine(WORKER, {
    config: { image, init, services: [], restart: { policy: "always" }, worker_idle_timeout: IDLE_S },
  }));
});

afterAll(async () => {
  for (const app of [WORKER, QUEUE]) await place.client.destroyApp(app, { force: true });
});

/** Puts a job into the queue, which may sleep. */
async function send(job: string): Promise<void> {
  const socket = connect(port, "127.0.0.1", () => socket.write(`LPUSH jobs ${job}\r\n`));
  expect(String((await once(socket, "data"))[0])).toMatch(/^:\d/);
  socket.destroy();
}

/** What the worker has printed since it was created. */
async function printed(): Promise<string> {
  let all = "";
  for await (const { text } of place.client.readLogs(WORKER, { machine: worker })) all += `${text}\n`;
  return all;
}

const asleep = () => place.client.waitForMachine(WORKER, worker, { state: "suspended", timeout: waitS(60) });

test("sleeps while it waits, as its queue does, and is woken by a job", async () => {
  await asleep();
  await send("first");
  await expect.poll(printed, AGAIN).toContain("first");
});

/** Until the function returned is called, the host says of no connection with the two that it ends: as after a loss of power. */
async function silenced(): Promise<() => Promise<void>> {
  const table = `ip hibernaut_silent_${process.pid}`;
  const nft = (...commands: string[]) => promisify(execFile)("nft", [commands.join("; ")]);
  const machines = (await Promise.all([WORKER, QUEUE].map((app) => place.client.listMachines(app)))).flat();
  const addresses = machines.map(({ private_address: address }) => address).join(", ");
  await nft(
    `add table ${table}`,
    `add chain ${table} out { type filter hook output priority 0; }`,
    `add rule ${table} out ip daddr { ${addresses} } tcp flags & (fin | rst) != 0 drop`,
  );
  return async () => void (await nft(`delete table ${table}`));
}

test("is told that its connection went with the host, waits again, and gets the next job", async () => {
  await asleep();
  const speak = await silenced();
  try {
    await place.served.kill();
    await place.served.start();
    await expect.poll(printed, AGAIN).toContain("Software caused connection abort");
    // The queue has forgotten whom it would have given the next job to.
    await asleep();
  } finally {
    await speak();
  }
  await send("second");
  await expect.poll(printed, AGAIN).toContain("second");
});
