/** Two hosts of one cluster on this machine: two platforms, each with its own data directory, and one etcd. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { initCluster, joinCluster } from "@hibernaut/cluster/join";
import { freePort } from "../../scripts/lib/free-port.mjs";
import { startPlatform } from "../../scripts/lib/platform.mjs";
import { findTool, toolEnvironment } from "../../scripts/lib/test-tools.mjs";
import { cpuMs } from "../lib/processes.mjs";

const ROOT = join(import.meta.dirname, "../..");
const HOST = "127.0.0.1";
const NAMES = /** @type {const} */ (["a", "b"]);
const PATIENCE_MS = 30_000;

/**
 * @typedef {object} BenchHost
 * @property {string} name
 * @property {import("../../scripts/lib/platform.mjs").Platform["call"]} call Calls its API.
 * @property {string} apiUrl
 * @property {string} token Of an administrator.
 * @property {number} port Where its proxy listens.
 * @property {() => number} cpuMs What its platform has used so far.
 */

/**
 * Starts etcd, and the hosts a and b.
 *
 * @param {object} [options]
 * @param {Record<string, string>} [options.env] Settings of both.
 * @param {(line: string) => void} [options.say] Gets each line of their logs; printed by default.
 */
export async function startCluster({ env = {}, say } = {}) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "hibernaut-cluster-")));
  const etcd = await startEtcd(join(folder, "etcd"));
  /** @type {import("../../scripts/lib/platform.mjs").Platform[]} */
  const platforms = [];
  const folders = NAMES.map((name) => join(folder, name));
  const close = async () => {
    for (const platform of platforms) await platform.stop();
    for (const dataDir of folders) uninstall(dataDir);
    etcd.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const [at, name] of NAMES.entries()) {
      const dataDir = /** @type {string} */ (folders[at]);
      const settings = { dataDir, region: "local" };
      const first = platforms[0];
      if (first === undefined) await initCluster({ settings, name, peer: HOST, directory: { etcd: [etcd.url] } });
      else {
        const { token } = await first.call("POST", "/cluster/tokens", {});
        await joinCluster({ version: "0.1.0", settings, name, peer: HOST, token });
      }
      Object.assign(process.env, environmentOf(dataDir), env);
      platforms.push(await startPlatform(say && { say }));
    }
    const token = tokenIn(/** @type {string} */ (folders[0]));
    const hosts = platforms.map(({ apiUrl, call, proxyUrl, pid }, at) => ({
      ...{ apiUrl, token },
      name: /** @type {string} */ (NAMES[at]),
      ...{ call, port: Number(new URL(proxyUrl ?? "").port), cpuMs: () => cpuMs(pid) },
    }));
    return { hosts: /** @type {[BenchHost, BenchHost]} */ (hosts), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @param {string} dataDir */
function tokenIn(dataDir) {
  return String(JSON.parse(readFileSync(join(dataDir, "config.json"), "utf8")).api_token);
}

/** @param {string} dataDir */
function environmentOf(dataDir) {
  return {
    HIBERNAUT_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, "cfg"),
    HIBERNAUT_API_LISTEN: `${HOST}:0`,
    HIBERNAUT_PROXY_LISTEN: `${HOST}:0`,
    HIBERNAUT_PEER_LISTEN: `${HOST}:0`,
    HIBERNAUT_NETWORK: "user",
    HIBERNAUT_KEEP_WARM: "0", // every wake is to come from the snapshot
    HIBERNAUT_LOG_LEVEL: "warn",
  };
}

/** @param {string} directory */
async function startEtcd(directory) {
  const [client, peer] = [`http://${HOST}:${await freePort()}`, `http://${HOST}:${await freePort()}`];
  const args = ["--name=one", `--data-dir=${directory}`, `--initial-cluster=one=${peer}`, "--log-level=error"];
  args.push(`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`);
  args.push(`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`);
  const child = spawn(findTool("etcd"), args, { stdio: "ignore", env: toolEnvironment() });
  child.once("error", () => {}); // it is then missed below
  const up = async () => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await delay(50))
      if (
        await fetch(`${client}/health`).then(
          ({ ok }) => ok,
          () => false,
        )
      )
        return;
    throw new Error("etcd does not start. npm run setup -- --tests gets it.");
  };
  await up();
  return { url: client, kill: child.kill.bind(child) };
}

/** @param {string} dataDir */
function uninstall(dataDir) {
  const env = { ...process.env, ...environmentOf(dataDir) };
  spawnSync(process.execPath, [join(ROOT, "packages/cli/bin/hibernaut.js"), "uninstall"], { stdio: "ignore", env });
}
