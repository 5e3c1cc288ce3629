/** The two databases, created for this run and filled with the medium data set. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { ask, startTestServer } from "../../services/orders/test/postgres/server.ts";

const SEED = join(import.meta.dirname, "../../services/orders/src/seed/main.ts");

/**
 * @typedef {object} OpenDatabase
 * @property {NodeJS.ProcessEnv} env The settings with which the service uses it.
 * @property {string} version
 * @property {() => Promise<void>} remove
 */

/** @type {Record<string, () => Promise<OpenDatabase>>} */
export const DATABASES = { sqlite: openSqlite, postgres: openPostgres };

async function openSqlite() {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
  const clean = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", clean);
  const env = { ORDERS_SQLITE_PATH: join(folder, "orders.db") };
  await fill(env);
  const db = new Database(env.ORDERS_SQLITE_PATH);
  const version = String(db.prepare("SELECT sqlite_version()").pluck().get());
  db.close();
  return {
    env,
    version,
    async remove() {
      process.removeListener("exit", clean);
      clean();
    },
  };
}

async function openPostgres() {
  const server = await startTestServer();
  try {
    const access = await server.newDatabase();
    const { host: DB_HOST, port, user: DB_USER, password: DB_PASSWORD, database: DB_NAME } = access;
    const env = { DB_HOST, DB_PORT: String(port), DB_USER, DB_PASSWORD, DB_NAME };
    await fill(env);
    // Otherwise autovacuum may run in the middle of a measurement.
    await ask(access, "VACUUM ANALYZE");
    const [row] = await ask(access, "SHOW server_version");
    return { env, version: String(row?.["server_version"]), remove: () => server.remove() };
  } catch (error) {
    await server.remove();
    throw error;
  }
}

/** @param {NodeJS.ProcessEnv} env */
async function fill(env) {
  await promisify(execFile)(process.execPath, [SEED, "--size", "medium"], {
    env: { PATH: process.env.PATH, ...env },
  });
}
