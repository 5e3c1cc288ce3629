/**
 * PostgreSQL's data on a volume, under write load: what it has acknowledged survives whatever befalls its machine.
 *
 * @module-tag again
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { diskOf, faultsOf } from "../helpers/notebook.ts";
import { postgresImage } from "../helpers/postgres-image.ts";
import { Place } from "../helpers/served.ts";
import { Writer } from "../helpers/writer.ts";

/** 20 of each, as is promised, take seven minutes under emulation. */
const CYCLES = longOr(20, 1);
const TIMEOUT_MS = 60_000 + CYCLES * 120_000;
/** Rows between two disturbances: enough for the server to be in the middle of something. */
const ROWS = 20;
/** The first start unpacks a database, which takes a while under emulation. */
const READY_TIMEOUT_MS = "110000";

let id: string;
let file: string;
let writer: Writer;
const place = Place.forTests({ HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS });
beforeAll(async () => {
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
afterAll(() => writer.stop());
beforeEach(() => writer.more(ROWS));

/** What befalls its machine. That the volume outlives the machine is told in `volumes`, without a database. */
const DISTURBANCES = {
  "suspend and resume": async () => {
    await place.suspend(id);
    expect(await faultsOf(file), "suspended").toEqual([]);
    await place.start(id);
    expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
  },
  "stop and start": async () => {
    await place.client.stopMachine(place.app, id);
    await place.reach(id, "stopped");
    expect(await faultsOf(file), "stopped").toEqual([]);
    await place.start(id);
  },
  "kill -9 of QEMU": async () => {
    const [vmm] = await place.processes();
    if (vmm === undefined) throw new Error("there is no guest to kill");
    process.kill(vmm.pid, "SIGKILL");
    await place.reach(id, "failed");
    await place.start(id);
  },
};

test.each(Object.entries(DISTURBANCES))("%s", { timeout: TIMEOUT_MS }, async (_what, disturb) => {
  // The writer never pauses of its own accord.
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    await disturb();
    await writer.more(ROWS);
  }
  expect(await writer.lost()).toEqual([]);
});
