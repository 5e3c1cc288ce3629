/** A private PostgreSQL for tests, with its own directory, port, socket and password. It is always removed at the end. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { TEST_TOOLS, toolEnvironment } from "../../../../scripts/lib/test-tools.mjs";
import type { Login } from "../../src/postgres/settings.ts";

const ENVIRONMENT = toolEnvironment();
const USER = "orders";
const PASSWORD = "a test's own";
/** PostgreSQL refuses to run as root, and every system has the user nobody. */
const NOBODY = 65534;
const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 20_000;

/** Where a database is, and its login, as `openPostgresStorage` takes them. */
export type Access = Login;

export interface TestServer {
  readonly port: number;
  /** Makes an empty database. */
  newDatabase(): Promise<Access>;
  /** `fast` ends sessions in order, and `immediate` is a crash. */
  stop(how?: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  restart(how?: "fast" | "immediate"): Promise<void>;
  /** Stops and removes everything. */
  remove(): Promise<void>;
}

/** Makes a cluster and starts it. Call `remove` in `afterAll`. If the process dies before, the server ends with it. */
export async function startTestServer(): Promise<TestServer> {
  const programs = findPrograms();
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-pg-"));
  let child: ChildProcess | undefined;
  const clean = () => {
    child?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once("exit", clean);
  const data = join(folder, "data");
  const log = join(folder, "log");

  const start = async () => {
    const output = openSync(log, "a");
    const settings = ["-D", data, "-k", folder, "-h", "127.0.0.1", "-p", String(port), "-c", "fsync=off"];
    const [program, args] = unprivileged(["--pdeathsig", "QUIT"], join(programs, "postgres"), settings);
    child = spawn(program, args, { stdio: ["ignore", output, output], cwd: folder, env: ENVIRONMENT });
    closeSync(output);
    await untilReady(access(port, "postgres"), child, log);
  };
  const stop = async (how: "fast" | "immediate" = "fast") => {
    const running = child;
    if (running === undefined) return;
    child = undefined;
    await end(running, how === "fast" ? "SIGINT" : "SIGQUIT");
  };
  const remove = async () => {
    await stop("immediate");
    process.removeListener("exit", clean);
    clean();
  };

  const port = await freePort();
  try {
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, PASSWORD);
    if (process.getuid?.() === 0) for (const path of [folder, passwordFile]) chownSync(path, NOBODY, NOBODY);
    const cluster = ["-D", data, "-U", USER, "-A", "scram-sha-256", `--pwfile=${passwordFile}`, "--no-sync"];
    const encoding = ["-E", "UTF8", "--locale=C.UTF-8"];
    await promisify(execFile)(...unprivileged([], join(programs, "initdb"), [...cluster, ...encoding]), {
      cwd: folder,
      env: ENVIRONMENT,
      timeout: START_LIMIT_MS,
    });
    await start();
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    port,
    newDatabase: async () => {
      const database = `test_${randomUUID().replaceAll("-", "")}`;
      await ask(access(port, "postgres"), `CREATE DATABASE ${database}`);
      return access(port, database);
    },
    stop,
    start,
    restart: async (how) => {
      await stop(how);
      await start();
    },
    remove,
  };
}

/** Runs one statement on a separate connection. */
export async function ask(to: Access, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ ...to, connectionTimeoutMillis: 5000 });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** Ends every other session on that database, as an administrator would. Returns how many there were. */
export async function terminateAll(to: Access): Promise<number> {
  const rows = await ask(
    to,
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return rows.length;
}

function access(port: number, database: string): Access {
  return { host: "127.0.0.1", port, user: USER, password: PASSWORD, database };
}

/** Finds what `npm test` unpacked, or what the system has: the newest version from 15 on. */
export function findPrograms(): string {
  for (const root of [TEST_TOOLS, "/"]) {
    const versions = join(root, "usr/lib/postgresql");
    if (!existsSync(versions)) continue;
    const found = readdirSync(versions)
      .sort((a, b) => Number(b) - Number(a))
      .find((name) => Number(name) >= 15 && existsSync(join(versions, name, "bin/postgres")));
    if (found !== undefined) return join(versions, found, "bin");
  }
  throw new Error("These tests need PostgreSQL 15 or newer (Debian: postgresql).");
}

/**
 * PostgreSQL refuses to run as root, and its programs may be in a directory that only root can enter. They look for each
 * other with access(2), which leaves a user's capabilities out unless `no_setuid_fixup` is set.
 */
export function unprivileged(options: string[], program: string, args: string[]): [string, string[]] {
  const user = ["--reuid", `${NOBODY}`, "--regid", `${NOBODY}`, "--clear-groups"];
  const enter = ["--securebits", "+no_setuid_fixup", "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"];
  const ids = process.getuid?.() === 0 ? [...user, ...enter] : [];
  return ["setpriv", [...ids, ...options, program, ...args]];
}

async function untilReady(to: Access, child: ChildProcess, log: string): Promise<void> {
  const limit = Date.now() + START_LIMIT_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}, see ${log}.`);
    try {
      await ask(to, "SELECT 1");
      return;
    } catch (error) {
      if (Date.now() > limit) throw error;
    }
    await sleep(50);
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}
