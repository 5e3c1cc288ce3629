/**
 * The orders service in a machine, its PostgreSQL on the host: connections that died while the machine slept.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Access,
  ask,
  startTestServer,
  type TestServer,
  terminateAll,
} from "../../../../services/orders/test/postgres/server.ts";
import { longOr } from "../helpers/long.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const SEED = join(ROOT, "services/orders/src/seed/main.ts");
const PORT = 3000;
/** The database listens on the host's loopback, which a machine sees at this address, in this mode only. */
const NETWORK = "user";
const HOST_ADDRESS = "10.0.2.2";
/** A busy host that emulates in software is slow, and how long the service waits is not what is tested here. */
const PATIENCE = { DB_TIMEOUT_MS: "20000", DB_START_TIMEOUT_MS: "60000" };
const READY_TIMEOUT_MS = "90000";

let server: TestServer;
let place: Place;
let access: Access;
let id: string;
let url: string;
/** One machine for all: it has no memory of the other tests but its connections, which is what they break. */
beforeAll(async () => {
  server = await startTestServer();
  access = await server.newDatabase();
  [place] = await Promise.all([
    Place.open({ HIBERNAUT_NETWORK: NETWORK, HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS }),
    promisify(execFile)(process.execPath, [SEED, "--size", "small"], {
      env: { ...process.env, ...databaseEnv(access) },
    }),
  ]);
  const machine = await place.machine({
    image: `oci:${join(ROOT, ".build/orders")}:latest`,
    services: [{ internal_port: PORT }],
    env: { ...databaseEnv({ ...access, host: HOST_ADDRESS }), ...PATIENCE },
  });
  id = machine.machine_id;
  url = `http://${machine.private_address}:${PORT}`;
});
afterAll(async () => {
  const left = await place?.close();
  await server?.remove();
  expect(left).toEqual(NOTHING_LEFT);
});

function databaseEnv({ host, port, user, password, database }: Access): Record<string, string> {
  return { DB_HOST: host, DB_PORT: `${port}`, DB_USER: user, DB_PASSWORD: password, DB_NAME: database };
}

/** One request, on a connection of its own. Nothing here is tried again. */
async function request(path: string, rows?: unknown[]): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}${path}`, {
    headers: { connection: "close", ...(rows && { "content-type": "application/json" }) },
    ...(rows && { method: "POST", body: JSON.stringify(rows) }),
  });
  return { status: response.status, body: await response.json() };
}

const search = () => request("/products?name=tea");

/** What may become of the connections while their owner sleeps. */
const FATES = {
  "the server ended all sessions": async () => void (await terminateAll(access)),
  "the server was restarted": () => server.restart(),
};

/** A restart ends all sessions, too. */
const TRIED = Object.entries(FATES).slice(longOr(0, 1));

/** Opens several connections to the database, and has the machine sleep while something befalls them. */
async function sleepThrough(befall: () => Promise<void>): Promise<void> {
  const found = await Promise.all(Array.from({ length: 4 }, search));
  expect(found.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(await ask(access, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'orders'")).not.toEqual([]);
  await place.suspend(id);
  await befall();
  await place.start(id);
  // A cold start would have new connections, and prove nothing.
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
}

test.each(TRIED)("%s: the first search after the sleep finds the same", { tags: "again" }, async (_, befall) => {
  const before = await search();
  expect(before).toMatchObject({ status: 200, body: { total: 2 } });
  await sleepThrough(befall);
  expect(await search()).toEqual(before);
});

test.each(TRIED)("%s: the first write after the sleep is made exactly once", async (fate, befall) => {
  await sleepThrough(befall);
  const companyName = `Night Shift, when ${fate}`;
  const written = await request("/suppliers", [{ companyName, country: "Norway" }]);
  expect(written).toMatchObject({ status: 201, body: [{ companyName }] });
  const rows = await ask(access, `SELECT count(*)::int AS times FROM suppliers WHERE "companyName" = $1`, [
    companyName,
  ]);
  expect(rows).toEqual([{ times: 1 }]);
});
