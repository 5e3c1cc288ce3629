/**
 * PostgreSQL's data on a volume, under write load: what it has acknowledged survives whatever befalls its machine.
 *
 * @module-tag again
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { diskOf, faultsOf } from "../helpers/notebook.ts";
import { postgresImage } from "../helpers/postgres-image.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { Writer } from "../helpers/writer.ts";

/** 20 of each, as is promised, take seven minutes under emulation. */
const CYCLES = longOr(20, 1);
const TIMEOUT_MS = 60_000 + CYCLES * 120_000;
/** Rows between two disturbances: enough for the server to be in the middle of something. */
const ROWS = 20;
/** The first start unpacks a database, which takes a while under emulation. */
const READY_TIMEOUT_MS = "110000";

/** That a volume outlives its machine is also told in `volumes`, without a database. */
const testInLong = longOr(test, test.skip);

let place: Place;
let id: string;
let file: string;
let writer: Writer;
beforeAll(async () => {
  place = await Place.open({ HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS });
  const machine = await place.machine({
    image: await postgresImage(),
    mounts: [{ volume: "pg_data", path: "/data" }],
    services: [{ internal_port: 5432 }],
    stop_config: { timeout: 60 },
    restart: { policy: "no" },
  });
  expect(machine).toMatchObject({ state: "running", state_reason: null });
  id = machine.machine_id;
  file = diskOf(place.dataDir, machine.config.mounts?.[0]?.volume ?? "");
  writer = new Writer(machine.private_address);
}, 300_000);
afterAll(async () => {
  await writer?.stop();
  expect(await place?.close()).toEqual(NOTHING_LEFT);
});
beforeEach(() => writer.more(ROWS));

/** The same disturbance again and again; the writer never pauses of its own accord. */
async function cycles(what: string, disturb: () => Promise<void>): Promise<void> {
  const before = writer.acknowledged.length;
  const began = performance.now();
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    await disturb();
    await writer.more(ROWS);
  }
  expect(await writer.lost()).toEqual([]);
  const seconds = Math.round((performance.now() - began) / 1000);
  const rows = `${writer.acknowledged.length - before} rows acknowledged, ${writer.acknowledged.length} in all, none lost`;
  console.log(`${CYCLES} x ${what} in ${seconds} s: ${rows}; ${writer.broken} connections broke`);
}

test("it is suspended and resumed", { tags: "again", timeout: TIMEOUT_MS }, () =>
  cycles("suspend and resume", async () => {
    await place.suspend(id);
    expect(await faultsOf(file), "suspended").toEqual([]);
    await place.start(id);
    expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
  }),
);

test("it is stopped and started", { tags: "again", timeout: TIMEOUT_MS }, () =>
  cycles("stop and start", async () => {
    await place.client.stopMachine(place.app, id);
    await place.reach(id, "stopped");
    expect(await faultsOf(file), "stopped").toEqual([]);
    await place.start(id);
  }),
);

test("its QEMU is killed", { timeout: TIMEOUT_MS }, () =>
  cycles("kill -9 of QEMU", async () => {
    const [vmm] = await place.processes();
    if (vmm === undefined) throw new Error("there is no guest to kill");
    process.kill(vmm.pid, "SIGKILL");
    await place.reach(id, "failed");
    await place.start(id);
  }),
);

testInLong("nothing is lost in the end, on a machine of its own", { timeout: TIMEOUT_MS }, async () => {
  const { config } = await place.get(id);
  await place.client.destroyMachine(place.app, id, { force: true });
  await place.reach(id, "destroyed");
  expect(await faultsOf(file), "destroyed while it ran").toEqual([]);
  await writer.stop();
  const heir = await place.machine(config);
  expect(heir.state).toBe("running");
  writer = new Writer(heir.private_address, writer);
  await writer.more(ROWS);
  expect(await writer.lost()).toEqual([]);
});
