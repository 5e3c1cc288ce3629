/**
 * Clients that hold connections take every descriptor of the platform: its machines run on, and none is lost for it.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import { expect, test } from "vitest";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { quietFor } from "../helpers/quiet.ts";
import { Place } from "../helpers/served.ts";

const run = promisify(execFile);
/** How many more descriptors than now the platform may have, and how many connections take them. */
const SPARE = 20;
const CONNECTIONS = 60;

const place = Place.forTests();

/** Lets the platform have as many descriptors as it has now and a few more, and takes those. Returns how to give them back. */
async function takeAll(): Promise<() => Promise<void>> {
  const { pid } = place.served;
  const open = (await readdir(`/proc/${pid}/fd`)).length;
  const { stdout } = await run("prlimit", ["--pid", String(pid), "--nofile", "--noheadings", "--output", "SOFT"]);
  await run("prlimit", ["--pid", String(pid), `--nofile=${open + SPARE}:`]);
  const { hostname, port } = new URL(place.proxyUrl);
  const sockets: Socket[] = [];
  for (let count = 0; count < CONNECTIONS; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    await once(socket, "connect");
    sockets.push(socket);
  }
  await expect.poll(async () => (await readdir(`/proc/${pid}/fd`)).length).toBeGreaterThanOrEqual(open + SPARE - 1);
  return async () => {
    for (const socket of sockets) socket.destroy();
    await run("prlimit", ["--pid", String(pid), `--nofile=${stdout.trim()}:`]);
  };
}

test("a machine runs on; one whose QEMU ends meanwhile starts again once there are descriptors", async () => {
  const { machine_id: id, private_address: address } = await place.machine();
  const { machine_id: ended, private_address: itsAddress } = await place.machine();
  const before = await askUntilAnswered(address);
  const processes = await place.processes();
  const giveBack = await takeAll();
  // Several times as long as the platform takes to look at all of its machines.
  await quietFor(1_000);
  for (const guest of processes.filter(({ machineId }) => machineId === ended)) await killProcess(guest);
  await quietFor(1_000);
  await giveBack();
  expect(await place.get(id)).toMatchObject({ state: "running", state_reason: null });
  expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
  expect(await place.processes()).toContainEqual(processes.find(({ machineId }) => machineId === id));
  await place.reach(ended, "running");
  await expect.poll(async () => (await place.get(ended)).state, { timeout: 60_000 }).toBe("running");
  await askUntilAnswered(itsAddress);
});
