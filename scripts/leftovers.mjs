/** What tests may leave behind on the machine, seen before and after they ran. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Every process started by a test run inherits this variable, unless it is started without an environment. */
export const RUN_VARIABLE = "TEST_RUN_ID";

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process has ended, or is someone else's
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

/** @param {string} run @returns {string[]} */
function processes(run) {
  return list("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    const machine = /\bqemu-system/.test(command) && command.includes("hibernaut");
    const child = command !== "" && `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${RUN_VARIABLE}=${run}\0`);
    return machine || child ? [`process ${pid}: ${command.slice(0, 200)}`] : [];
  });
}

/** Only root sees any; without nft there are none. */
function tables() {
  const path = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`;
  const { stdout } = spawnSync("nft", ["list", "tables"], { encoding: "utf8", env: { ...process.env, PATH: path } });
  return (stdout ?? "")
    .split("\n")
    .filter((line) => line.includes(" hibernaut_"))
    .map((line) => `nftables ${line}`);
}

/**
 * Everything of ours that is there now: processes, temporary files, mounts, network interfaces and firewall tables.
 *
 * @param {string} run what {@link RUN_VARIABLE} is set to for the tests
 * @returns {string[]}
 */
export function findLeftovers(run) {
  const files = list(tmpdir())
    .filter((name) => name.startsWith("hibernaut-"))
    .map((name) => `file ${join(tmpdir(), name)}`);
  const mounts = read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.includes("/hibernaut-"))
    .map((path) => `mount ${path}`);
  const interfaces = list("/sys/class/net")
    .filter((name) => name.startsWith("hib"))
    .map((name) => `network interface ${name}`);
  const namespaces = list("/run/netns")
    .filter((name) => name.startsWith("hib"))
    .map((name) => `network namespace ${name}`);
  return [...processes(run), ...files, ...mounts, ...interfaces, ...namespaces, ...tables()];
}
