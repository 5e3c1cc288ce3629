/** Two hosts of one cluster on this machine: two platforms, each with its own data directory, and one etcd. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initCluster, joinCluster } from "@hibernaut/cluster/join";
import { ownSettings, tokenIn, uninstall } from "../../scripts/lib/own-platform.mjs";
import { startPlatform } from "../../scripts/lib/platform.mjs";
import { startEtcd } from "../lib/etcd.mjs";
import { cpuMs } from "../lib/processes.mjs";

const HOST = "127.0.0.1";
const NAMES = /** @type {const} */ (["a", "b"]);

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
  const etcd = await startEtcd(1);
  /** @type {import("../../scripts/lib/platform.mjs").Platform[]} */
  const platforms = [];
  const folders = NAMES.map((name) => join(folder, name));
  const close = async () => {
    for (const platform of platforms) await platform.stop();
    for (const dataDir of folders) uninstall(environmentOf(dataDir));
    etcd.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const [at, name] of NAMES.entries()) {
      const dataDir = /** @type {string} */ (folders[at]);
      const settings = { dataDir, region: "local" };
      const first = platforms[0];
      if (first === undefined) await initCluster({ settings, name, peer: HOST, directory: { etcd: etcd.urls } });
      else {
        const { token } = await first.call("POST", "/cluster/tokens", {});
        await joinCluster({ version: "0.1.0", settings, name, peer: HOST, token });
      }
      platforms.push(await startPlatform({ env: { ...environmentOf(dataDir), ...env }, ...(say && { say }) }));
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
function environmentOf(dataDir) {
  return {
    ...process.env,
    ...ownSettings(dataDir),
    HIBERNAUT_PEER_LISTEN: `${HOST}:0`,
    HIBERNAUT_NETWORK: "user",
    HIBERNAUT_KEEP_WARM: "0", // every wake is to come from the snapshot
    HIBERNAUT_LOG_LEVEL: "warn",
  };
}
