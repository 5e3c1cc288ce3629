/** A PostgreSQL that sleeps with its clients' connections open: what they are answered, and that no row is lost. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { postgresImage } from "../helpers/postgres-image.ts";
import { Place } from "../helpers/served.ts";

const CYCLES = 50;
const POOL = 10;
/** The first start unpacks a database, which takes a while under emulation. */
const READY_TIMEOUT_MS = "110000";
const MINUTE_MS = 60_000;

const place = Place.forTests({ HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS, HIBERNAUT_IDLE_CHECK_INTERVAL: "1" });
const port = await freePort();
let id: string;
beforeAll(async () => {
  const tcp = { protocol: "tcp" as const, internal_port: 5432, ports: [{ port }], autostop: "suspend" as const };
  ({ machine_id: id } = await place.machine({
    image: await postgresImage(),
    mounts: [{ volume: "pg_data", path: "/data" }],
    services: [{ ...tcp, idle: "quiet", idle_timeout: 1 }],
    stop_config: { timeout: 60 },
    restart: { policy: "no" },
  }));
});

const asleep = () => place.client.waitForMachine(place.app, id, { state: ["suspended"], timeout: 60 });

test("psql wakes it, and finds what it wrote before the sleep", { timeout: 3 * MINUTE_MS }, async () => {
  const psql = async (statement: string) => {
    const args = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres", "-qAt", "-c", statement];
    return (await promisify(execFile)("psql", args, { timeout: MINUTE_MS })).stdout.trim();
  };
  await psql("create table seen (cycle int, client int)");
  await asleep();
  expect(await psql("select count(*) from seen")).toBe("0");
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
});

test(`a pool of ${POOL} connections sleeps and wakes with it, ${CYCLES} times`, {
  timeout: 30 * MINUTE_MS,
}, async () => {
  const pool = new pg.Pool({ host: "127.0.0.1", port, user: "postgres", max: POOL, min: POOL, idleTimeoutMillis: 0 });
  const errors: Error[] = [];
  pool.on("error", (error) => errors.push(error));
  const clients = await Promise.all(Array.from({ length: POOL }, () => pool.connect()));
  try {
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      await asleep();
      await Promise.all(
        clients.map((client, index) => client.query("insert into seen values ($1, $2)", [cycle, index])),
      );
    }
    const [client] = clients;
    const found = await client?.query<{ count: string }>("select count(distinct (cycle, client)) from seen");
    expect(Number(found?.rows[0]?.count)).toBe(CYCLES * POOL);
    expect(errors).toEqual([]);
    const events = await place.client.listMachineEvents(place.app, id, { limit: 1000 });
    const wakes = events.filter(({ type, details }) => type === "started" && details["kind"] === "resume");
    expect(wakes.length).toBeGreaterThanOrEqual(CYCLES);
  } finally {
    for (const client of clients) client.release(true);
    await pool.end();
  }
});
