#!/usr/bin/env node
/**
 * Packs the orders service into an OCI layout, with its embedded database and the small data set. Needs the Node that
 * the setup brings. To run it alone: `node scripts/pack-orders.mjs [--force] [--out DIR] [--node FILE]`.
 */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { nodeBinary, ROOT } from "./lib/node.mjs";
import { packFromCommandLine, packNodeApp } from "./lib/node-image.mjs";

const SERVICE = join(ROOT, "services/orders");
const run = promisify(execFile);
/** Bundling and seeding take a second each. */
const TIMEOUT_MS = 60_000;

/** All files below a directory, sorted. @param {string} directory @returns {string[]} */
function filesBelow(directory) {
  const entries = readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** @param {string} directory @param {string} to @returns {import("./lib/node-image.mjs").AppFile[]} */
const copied = (directory, to) =>
  filesBelow(directory).map((from) => ({ from, to: join(to, relative(directory, from)) }));

/** @param {string} work @returns {Promise<import("./lib/node-image.mjs").AppFile[]>} */
async function collect(work) {
  // One file instead of a thousand modules: under software emulation, opening each one takes noticeable time.
  const bundle = join(work, "main.mjs");
  const { build } = await import("esbuild");
  await build({
    entryPoints: [join(SERVICE, "src/main.ts")],
    outfile: bundle,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    // It has a native part that cannot be bundled.
    external: ["better-sqlite3"],
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
  const database = join(work, "orders.db");
  await run(nodeBinary(), [join(SERVICE, "src/seed/main.ts"), "--size", "small"], {
    env: { ...process.env, ORDERS_SQLITE_PATH: database, DB_HOST: "" },
    timeout: TIMEOUT_MS,
  });
  const sqlite = join(ROOT, "node_modules/better-sqlite3");
  return [
    // At the same depth as in the sources, because the service finds its migrations by a relative path.
    { from: bundle, to: "app/src/sqlite/main.mjs" },
    ...copied(join(SERVICE, "migrations"), "app/migrations"),
    { from: join(sqlite, "package.json"), to: "app/node_modules/better-sqlite3/package.json" },
    ...copied(join(sqlite, "lib"), "app/node_modules/better-sqlite3/lib"),
    { from: join(sqlite, "prebuilds/linux-x64.node"), to: "app/node_modules/better-sqlite3/prebuilds/linux-x64.node" },
    { from: database, to: "data/orders.db", mode: 0o666 },
  ];
}

const ORDERS = {
  out: join(ROOT, ".build/orders"),
  get inputs() {
    return [
      ...filesBelow(join(SERVICE, "src")),
      ...filesBelow(join(SERVICE, "migrations")),
      join(ROOT, "package-lock.json"),
    ];
  },
  config: {
    User: "app",
    ExposedPorts: { "3000/tcp": {} },
    Env: [
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOST=0.0.0.0",
      "PORT=3000",
      "ORDERS_SQLITE_PATH=/data/orders.db",
      "NODE_ENV=production",
    ],
    Entrypoint: ["node"],
    Cmd: ["/app/src/sqlite/main.mjs"],
    WorkingDir: "/app",
  },
  files: collect,
  writable: ["data"],
};

/** @param {import("./lib/node-image.mjs").PackOptions} [options] */
export const packOrders = (options) => packNodeApp(ORDERS, options);

await packFromCommandLine(import.meta.url, packOrders);
