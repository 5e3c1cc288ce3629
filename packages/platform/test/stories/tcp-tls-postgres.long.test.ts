/** A PostgreSQL that sleeps behind the proxy's TLS: what `psql` sees, and that a query can be cancelled. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { beforeAll, expect, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { postgresImage } from "../helpers/postgres-image.ts";
import { selfSigned } from "../helpers/self-signed.ts";
import { Place } from "../helpers/served.ts";
import { useTempFolder } from "../helpers/temp.ts";

/** The first start unpacks a database, which takes a while under emulation. */
const READY_TIMEOUT_MS = "110000";
const MINUTE_MS = 60_000;

const port = await freePort();
const folder = useTempFolder("certificates");
let id: string;
let root: string;

beforeAll(async () => {
  ({ certFile: root } = selfSigned(folder.path, "shop.localhost", ["shop.localhost"]));
});
const place = Place.forTests(() => ({
  HIBERNAUT_READY_TIMEOUT_MS: READY_TIMEOUT_MS,
  HIBERNAUT_PROXY_TLS_FOLDER: folder.path,
}));
beforeAll(async () => {
  ({ machine_id: id } = await place.machine({
    image: await postgresImage(),
    mounts: [{ volume: "pg_data", path: "/data" }],
    services: [{ protocol: "tcp", internal_port: 5432, autostop: "suspend", ports: [{ port, handlers: ["pg_tls"] }] }],
    stop_config: { timeout: 60 },
    restart: { policy: "no" },
  }));
  // It listens before it is ready, and says so.
  await vi.waitFor(() => psql("require", "select 1"), { timeout: MINUTE_MS, interval: 500 });
});

function connection(sslmode: string): string {
  return `host=shop.localhost hostaddr=127.0.0.1 port=${port} user=postgres sslmode=${sslmode} sslrootcert=${root}`;
}

async function psql(sslmode: string, statement: string): Promise<string> {
  const args = [connection(sslmode), "-qAt", "-c", statement];
  return (await promisify(execFile)("psql", args, { timeout: MINUTE_MS })).stdout.trim();
}

test("psql wakes it over TLS, with and without a look at the certificate", { timeout: 5 * MINUTE_MS }, async () => {
  await psql("require", "create table seen (mode text)");
  for (const mode of ["require", "verify-full"]) {
    await place.suspend(id);
    await psql(mode, `insert into seen values ('${mode}')`);
    expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
  }
  expect(await psql("verify-full", "select string_agg(mode, ',') from seen")).toBe("require,verify-full");
});

test("psql without TLS is told what to do, and wakes nothing", { timeout: 2 * MINUTE_MS }, async () => {
  await place.suspend(id);
  await expect(psql("disable", "select 1")).rejects.toMatchObject({
    stderr: expect.stringContaining("This port requires TLS. Connect with sslmode=require."),
  });
  expect((await place.get(id)).state).toBe("suspended");
});

test("a query is cancelled as at a server without a proxy", { timeout: 2 * MINUTE_MS }, async () => {
  const child = spawn("psql", [connection("require"), "-c", "select pg_sleep(600)"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (piece) => (said += String(piece)));
  const ended = once(child, "exit");
  await expect
    .poll(() => psql("require", "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'"), {
      timeout: MINUTE_MS,
      interval: 500,
    })
    .toBe("1");
  child.kill("SIGINT");
  await ended;
  expect(said).toContain("canceling statement due to user request");
});
