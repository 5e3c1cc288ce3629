#!/usr/bin/env node
/**
 * `npm run bench:backup` measures backups to a target on the same disk, of a volume that is full of random bytes and of which 1 %
 * changes between two backups: how long a backup takes, compared with restic alone on the same file and with a plain
 * read of it, and how much more it stores than what changed. `-- --gb 1` takes a smaller volume, and then restic's chunks of a
 * megabyte weigh more in what is stored. Then it starts a machine with a volume of 4 GB (`--beside-gb`), and measures how long its requests
 * wait during backups, compared with how long they wait otherwise. Prints medians and spread, records every sample in
 * `bench/results/backup.json`, and exits with code 1 if a goal is missed.
 *
 * It needs room for four volumes on the disk of temporary files.
 */
import { execFile } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { startOwnPlatform } from "../scripts/lib/own-platform.mjs";
import { createProgress } from "../scripts/lib/progress.mjs";
import { findTool } from "../scripts/lib/test-tools.mjs";
import { setup } from "../scripts/setup.mjs";
import { besideBackups } from "./backup/beside.mjs";
import { goalsMet } from "./lib/goals.mjs";
import { environment, writeResult } from "./lib/record.mjs";
import { median, round, summaries } from "./lib/stats.mjs";

/** Times compared with those of restic and of a quiet machine, and bytes compared with those that changed. */
const GOALS = { time_to_restic: 1.2, stored_to_changed: 1.03, beside_to_quiet_p99: 2 };
const run = promisify(execFile);
const PART_CHANGED = 0.01;
const CHUNK_BYTES = 16 * 1024 ** 2;
const ASK_MS = 50;

const { values: options } = parseArgs({
  options: {
    gb: { type: "string", default: "10" },
    "beside-gb": { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
  },
});
const [gb, besideGb, rounds] = [Number(options.gb), Number(options["beside-gb"]), Number(options.rounds)];
if (![gb, besideGb, rounds].every((each) => Number.isInteger(each) && each >= 1))
  throw new Error("--gb, --beside-gb and --rounds take a whole number from 1.");
const bytes = gb * 1024 ** 3;
const changedBytes = Math.floor(bytes * PART_CHANGED);

await setup({ quiet: true });
const about = environment();
const restic = findTool("restic");
const folder = mkdtempSync(join(tmpdir(), "hibernaut-bench-"));
const { call, dataDir, port, close } = await startOwnPlatform({ HIBERNAUT_RESTIC: restic, HIBERNAUT_NETWORK: "user" });
/** @type {Record<string, number[]>} */
const samples = {};
const progress = createProgress(3 + rounds);
/** @type {Awaited<ReturnType<typeof besideBackups>> | undefined} */
let beside;
try {
  const disk = await progress.step(`a volume of ${gb} GB`, makeVolume);
  const alone = join(folder, "alone");
  const resticEnv = { RESTIC_REPOSITORY: alone, RESTIC_PASSWORD: "bench", RESTIC_CACHE_DIR: join(folder, "cache") };
  const resticRun = (/** @type {string[]} */ ...words) => run(restic, words, { env: { ...process.env, ...resticEnv } });
  await progress.step("the first backup, and restic's", async () => {
    await call("POST", "/platform/backups/targets", { name: "bench", url: join(folder, "target") });
    await backUp();
    await resticRun("init");
    await resticRun("backup", "--quiet", disk);
  });
  for (let number = 1; number <= rounds; number += 1)
    await progress.step(`backup ${number} of ${rounds} after 1 % changed`, async () => {
      // One run of bytes, at another place each time, as a program writes that appends.
      write(disk, { from: Math.floor((bytes - changedBytes) * (number / (rounds + 1))), length: changedBytes });
      const { phases, added } = await backUp();
      add(
        "backup_s",
        Object.values(phases).reduce((sum, each) => sum + each, 0),
      );
      for (const [phase, seconds] of Object.entries(phases)) add(`${phase}_s`, seconds);
      add("stored_to_changed", added / changedBytes);
      add("restic_s", await timed(() => resticRun("backup", "--quiet", disk)));
      // Past the page cache, which has the file by now.
      add(
        "read_s",
        await timed(() => run("dd", [`if=${disk}`, "of=/dev/null", "bs=16M", "iflag=direct", "status=none"])),
      );
    });
  await progress.step("backups of a machine that runs", async () => {
    await call("DELETE", "/apps/bench?force=true");
    beside = await besideBackups({ call, port, dataDir, scratch: folder, gb: besideGb, rounds, backUp });
  });
} finally {
  await close();
  rmSync(folder, { recursive: true, force: true });
}

const middle = (/** @type {string} */ name) => median(samples[name] ?? []);
const figures = {
  time_to_restic: round(middle("backup_s") / middle("restic_s")),
  /** No goal: restic alone is slower than a plain read, too. */
  copy_to_read: round(middle("copying_s") / middle("read_s")),
  stored_to_changed: round(middle("stored_to_changed"), 3),
  ...beside?.p99,
};
Object.assign(samples, beside?.samples);
const results = summaries(samples, 3);
console.table(results);
const met = goalsMet(figures, GOALS);
writeResult("backup", {
  ...about,
  goals: GOALS,
  gb,
  beside_gb: besideGb,
  changed_bytes: changedBytes,
  figures,
  results,
  samples,
});
process.exitCode = met ? 0 : 1;

/** Makes a volume, and fills it with what cannot be compressed. Returns the path of its disk. */
async function makeVolume() {
  await call("POST", "/apps", { app_name: "bench" });
  const { id } = await call("POST", "/apps/bench/volumes", { name: "data", size_gb: gb });
  const disk = join(dataDir, "volumes", String(id), "data.ext4");
  write(disk, { from: 0, length: bytes });
  return disk;
}

/**
 * Writes random bytes to the disk itself.
 *
 * @param {string} file @param {{ from: number, length: number }} range
 */
function write(file, { from, length }) {
  const handle = openSync(file, "r+");
  try {
    for (let at = from; at < from + length; at += CHUNK_BYTES) {
      const chunk = randomFillSync(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, from + length - at)));
      writeSync(handle, chunk, 0, chunk.length, at);
    }
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Backs up. Returns how long each phase took, in seconds, and how many bytes were added to what is stored. */
async function backUp() {
  /** @type {Record<string, number>} */
  const phases = {};
  const path = "/platform/backups/targets/bench";
  let target = await call("POST", `${path}/run`);
  let since = performance.now();
  while (target.running !== null) {
    await delay(ASK_MS);
    const { phase } = target.running;
    target = await call("GET", path);
    const now = performance.now();
    phases[phase] = (phases[phase] ?? 0) + (now - since) / 1000;
    since = now;
  }
  if (target.last.state !== "complete") throw new Error(target.last.error.message);
  return { phases, added: target.last.added };
}

/** @param {string} name @param {number} value */
function add(name, value) {
  (samples[name] ??= []).push(round(value, 3));
}

/** How long something takes, in seconds. @param {() => Promise<unknown>} work */
async function timed(work) {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
