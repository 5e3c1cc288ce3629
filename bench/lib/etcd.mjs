/** Members of etcd on this machine's loopback address, for measurements. */
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../scripts/lib/free-port.mjs";
import { findTool, toolEnvironment } from "../../scripts/lib/test-tools.mjs";
import { cpuMs, memoryMb } from "./processes.mjs";

const START_MS = 60_000;
const LOOK_MS = 50;

/**
 * @typedef {object} Etcd
 * @property {string[]} urls
 * @property {() => number} cpuMs CPU time of all members so far.
 * @property {() => number} memoryMb The largest member, in RAM.
 * @property {() => void} close
 */

/**
 * @param {number} members
 * @returns {Promise<Etcd>}
 */
export async function startEtcd(members) {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-scale-"));
  const ports = await Promise.all(
    Array.from({ length: members }, async () => ({ client: await freePort(), peer: await freePort() })),
  );
  const url = (/** @type {number} */ port) => `http://127.0.0.1:${port}`;
  const all = ports.map(({ peer }, index) => `e${index}=${url(peer)}`).join(",");
  const log = openSync(join(folder, "log"), "a");
  const children = ports.map(({ client, peer }, index) =>
    spawn(
      findTool("etcd"),
      [
        ...["--name", `e${index}`, "--data-dir", join(folder, `e${index}`), "--initial-cluster", all],
        ...["--listen-client-urls", url(client), "--advertise-client-urls", url(client)],
        ...["--listen-peer-urls", url(peer), "--initial-advertise-peer-urls", url(peer)],
        ...["--logger", "zap", "--log-level", "error"],
      ],
      { stdio: ["ignore", log, log], env: toolEnvironment() },
    ),
  );
  const etcd = {
    urls: ports.map(({ client }) => url(client)),
    cpuMs: () => children.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    memoryMb: () => Math.max(...children.map(({ pid }) => memoryMb(pid).rss)),
    close() {
      for (const child of children) child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  const end = performance.now() + START_MS;
  for (const one of etcd.urls)
    while (!(await serves(one))) {
      if (performance.now() > end) {
        etcd.close();
        throw new Error("etcd does not serve.");
      }
      await delay(LOOK_MS);
    }
  return etcd;
}

/** @param {string} url */
async function serves(url) {
  const body = JSON.stringify({ key: "eA==" });
  const reply = await fetch(`${url}/v3/kv/range`, { method: "POST", body }).catch(() => undefined);
  return reply?.ok === true;
}
