/** How long the requests of a running machine wait while backups copy it, compared with how long they wait otherwise. */
import { execFileSync } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { IMAGE, MEMORY_MB, PORT } from "../lib/counter.mjs";
import { percentile, round } from "../lib/stats.mjs";
import { ask, now } from "../proxy/wake-request.mjs";

const APP = "beside";
/** A request begins this often, whether or not the one before was answered, so that a pause delays all that fall into it. */
const EVERY_MS = 200;
/** How long requests are sent without a backup, before each one. */
const QUIET_MS = 30_000;
/** How much of the volume is written to. */
const PART_FILLED = 0.8;
const CHUNK_BYTES = 16 * 1024 ** 2;

/**
 * Measures it for a machine with a volume of `gb` GB, during `rounds` backups after a first one. Times are in milliseconds.
 *
 * @param {object} parts
 * @param {import("../../scripts/lib/platform.mjs").Platform["call"]} parts.call
 * @param {number} parts.port Of the proxy.
 * @param {string} parts.dataDir
 * @param {string} parts.scratch For temporary files.
 * @param {number} parts.gb
 * @param {number} parts.rounds
 * @param {() => Promise<unknown>} parts.backUp
 */
export async function besideBackups({ call, port, dataDir, scratch, gb, rounds, backUp }) {
  await createMachine({ call, dataDir, scratch, gb });
  const target = { host: "127.0.0.1", port, name: `${APP}.localhost` };
  await waits(target, AbortSignal.timeout(QUIET_MS));
  await backUp();
  /** @type {{ quiet_ms: number[], beside_ms: number[], pause_ms: number[] }} */
  const samples = { quiet_ms: [], beside_ms: [], pause_ms: [] };
  for (let number = 1; number <= rounds; number += 1) {
    samples.quiet_ms.push(...(await waits(target, AbortSignal.timeout(QUIET_MS))));
    const over = new AbortController();
    const asked = waits(target, over.signal);
    try {
      await backUp();
    } finally {
      over.abort();
      samples.beside_ms.push(...(await asked));
    }
    samples.pause_ms.push((await call("GET", "/platform/backup")).longest_pause_ms);
  }
  await call("DELETE", `/apps/${APP}?force=true`);
  const [quiet, beside] = [percentile(samples.quiet_ms, 0.99), percentile(samples.beside_ms, 0.99)];
  return { samples, p99: { quiet_p99_ms: quiet, beside_p99_ms: beside, beside_to_quiet_p99: round(beside / quiet) } };
}

/**
 * Creates a machine whose volume has a large file.
 *
 * @param {Pick<Parameters<typeof besideBackups>[0], "call" | "dataDir" | "scratch" | "gb">} parts
 */
async function createMachine({ call, dataDir, scratch, gb }) {
  await call("POST", "/apps", { app_name: APP });
  const { id: volume } = await call("POST", `/apps/${APP}/volumes`, { name: "data", size_gb: gb });
  const services = [{ internal_port: PORT, autostop: "off", autostart: true }];
  const mounts = [{ volume: "data", path: "/data" }];
  const config = { image: IMAGE, guest: { cpus: 1, memory_mb: MEMORY_MB }, services, mounts };
  const { machine_id: id } = await call("POST", `/apps/${APP}/machines`, { config });
  const path = `/apps/${APP}/machines/${id}`;
  await call("GET", `${path}/wait?timeout=120`);
  await call("POST", `${path}/stop`);
  await call("GET", `${path}/wait?state=stopped`);
  const file = join(scratch, "filling");
  writeFileSync(file, "");
  for (let at = 0; at < gb * 1024 ** 3 * PART_FILLED; at += CHUNK_BYTES)
    appendFileSync(file, randomFillSync(Buffer.allocUnsafe(CHUNK_BYTES)));
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  const command = ["-w", "-R", `write ${file} filling`, join(dataDir, "volumes", String(volume), "data.ext4")];
  execFileSync("debugfs", command, { env, stdio: "ignore" });
  rmSync(file);
  await call("POST", `${path}/start`);
  await call("GET", `${path}/wait?timeout=120`);
}

/**
 * Sends requests until the signal aborts. Returns how long each waited for its first byte since it should have begun.
 *
 * @param {import("../proxy/wake-request.mjs").Target} target @param {AbortSignal} until
 */
async function waits(target, until) {
  /** @type {Promise<number>[]} */
  const asked = [];
  for (let at = now(); !until.aborted; at += EVERY_MS) {
    await delay(Math.max(0, at - now()));
    // One that was given up has waited for that long, too.
    asked.push(
      ask(target).then(
        ({ firstByte }) => round(firstByte - at),
        () => round(now() - at),
      ),
    );
  }
  return Promise.all(asked);
}
