/**
 * Finds what a run of the tests leaves behind on the host. Other runs and platforms may be active at the same time:
 * only what is known to be the run's own counts.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lookAtHome } from "./lib/real-home.mjs";
import { atHome, makeHome } from "./lib/test-home.mjs";
import { placeForFiles } from "./lib/test-place.mjs";

/** Every process started by a test run inherits this variable, unless it is started with an environment of its own. */
export const RUN_VARIABLE = "TEST_RUN_ID";

/** As open as /tmp, because tests drop root's privileges and continue there. */
const LIKE_TMP = 0o1777;

/** Newer npm keeps its compile cache in the directory for temporary files. It belongs to npm, for its next run. */
const NPM_CACHE = "node-compile-cache";
/** Programs may keep what they like in the home of a run. */
const HOME = "home";
/** The run's copies of the images that platforms of tests begin with, where a link to them is not possible. */
export const IMAGES = "images";

/** Set to a directory on a disk, for tests whose subject is the disk: that of all others may be in memory. */
export const DISK_VARIABLE = "HIBERNAUT_TEST_DISK";

/**
 * @typedef {object} Run
 * @property {string} id what {@link RUN_VARIABLE} is set to
 * @property {string} directory where all its temporary files are, including data directories: bridges, firewall tables and QEMU
 *   processes name theirs
 * @property {string} disk the same on a disk, for tests whose subject that is; mostly the same directory
 * @property {NodeJS.ProcessEnv} environment
 * @property {string[]} realHome what was in the real home when the run began
 */

/** With `inMemory`, its files are in memory where the host has room. @param {{inMemory?: boolean}} [options] @returns {Run} */
export function openRun({ inMemory = false } = {}) {
  const id = randomBytes(3).toString("hex");
  // Short: sockets are below it, and their paths may have 107 bytes.
  const directory = join(placeForFiles(inMemory), `hib-${id}`);
  const disk = join(tmpdir(), `hib-${id}`);
  for (const each of new Set([directory, disk])) {
    mkdirSync(each);
    chmodSync(each, LIKE_TMP);
  }
  const environment = atHome(process.env, makeHome(directory));
  const own = { ...environment, TMPDIR: directory, [DISK_VARIABLE]: disk, [RUN_VARIABLE]: id };
  return { id, directory, disk, environment: own, realHome: lookAtHome() };
}

/** @param {Pick<Run, "directory" | "disk">} run */
const directoriesOf = ({ directory, disk }) => [...new Set([directory, disk])];

/**
 * Removes the run's directories, unless something is still mounted there.
 *
 * @param {Run} run
 */
export function closeRun(run) {
  if (mounts(run).length > 0) return;
  for (const directory of directoriesOf(run)) rmSync(directory, { recursive: true, force: true });
}

/**
 * Everything of the run that is there now: processes, temporary files, mounts, network interfaces, firewall tables, and
 * changes in the real home.
 *
 * @param {Run} run
 * @returns {string[]}
 */
export function findLeftovers(run) {
  const files = directoriesOf(run).flatMap((directory) =>
    list(directory)
      .filter((name) => ![NPM_CACHE, HOME, IMAGES].includes(name))
      .map((name) => join(directory, name)),
  );
  const memory = list("/dev/shm").filter((name) => name.startsWith(`hibernaut-${run.id}-`));
  const namespaces = list("/run/netns").filter((name) => name.startsWith(`hib-${run.id}-`));
  return [
    ...processes(run),
    ...files.map((path) => `file ${path}`),
    ...memory.map((name) => `file /dev/shm/${name}`),
    ...mounts(run).map((path) => `mount ${path}`),
    ...interfaces(run).map((name) => `network interface ${name}`),
    ...namespaces.map((name) => `network namespace ${name}`),
    ...tables(run).map((name) => `nftables table ${name}`),
    ...changes(run.realHome, lookAtHome()).map((line) => `changed in the real home: ${line}`),
  ];
}

/** @param {Run} run */
function processes(run) {
  return processesOf(run).map(({ pid, command }) => `process ${pid}: ${command.slice(0, 200)}`);
}

/** @param {Run} run @returns {{pid: number, command: string}[]} */
function processesOf(run) {
  return list("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    const command = read(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim();
    const child = `\0${read(`/proc/${name}/environ`)}`.includes(`\0${RUN_VARIABLE}=${run.id}\0`);
    const names = directoriesOf(run).some((directory) => command.includes(`${directory}/`));
    return command !== "" && (child || names) ? [{ pid: Number(name), command }] : [];
  });
}

/**
 * Kills what a run that was broken off has left running: guests outlive the platform that started them.
 *
 * @param {Run} run
 */
export function endProcesses(run) {
  for (const { pid } of processesOf(run)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has ended
    }
  }
}

/** Lines of only one of the lists. @param {string[]} before @param {string[]} after */
function changes(before, after) {
  return [...before.filter((line) => !after.includes(line)), ...after.filter((line) => !before.includes(line))];
}

/** @param {Run} run */
function mounts(run) {
  const paths = read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  return paths.filter((path) => directoriesOf(run).some((directory) => path.startsWith(`${directory}/`)));
}

/**
 * Bridges say whose they are, and taps are named after their bridge.
 *
 * @param {Run} run
 */
function interfaces(run) {
  const names = list("/sys/class/net");
  const aliasOf = (/** @type {string} */ name) => read(`/sys/class/net/${name}/ifalias`);
  const own = names.filter((name) => directoriesOf(run).some((directory) => aliasOf(name).startsWith(directory)));
  return names.filter((name) => own.some((bridge) => name === bridge || name.startsWith(`${bridge}t`)));
}

/**
 * Only root sees any; without nft there are none.
 *
 * @param {Run} run
 */
function tables(run) {
  const names = [...nft("list tables").matchAll(/^table (\w+ hibernaut_\w+)$/gm)].map(([, name = ""]) => name);
  return names.filter((name) => {
    const table = nft(`list table ${name}`);
    return directoriesOf(run).some((directory) => table.includes(`comment "${directory}/`));
  });
}

/** @param {string} words */
function nft(words) {
  const path = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`;
  return spawnSync("nft", words.split(" "), { encoding: "utf8", env: { ...process.env, PATH: path } }).stdout ?? "";
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // it has ended, or is someone else's
  }
}

/** @param {string} path */
function list(path) {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
