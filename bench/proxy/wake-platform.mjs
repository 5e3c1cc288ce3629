/** Starts the platform with a machine to wake, and finds out how to start the same guest with bare QEMU. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startPlatform } from "../../scripts/lib/platform.mjs";
import { runTool } from "./wake-files.mjs";
import { ask } from "./wake-request.mjs";
import { freePort } from "../../scripts/lib/free-port.mjs";

const ROOT = join(import.meta.dirname, "../..");
const IMAGE = join(ROOT, ".build/counter");
const HOST = "127.0.0.1";
const PORT = 8080;
const MEMORY_MB = 256;
const TRACE_MS = 2_000;

/** Starts the platform on a temporary data directory. */
export async function openPlatform() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "hibernaut-wake-")));
  const trace = join(folder, "trace.jsonl");
  // The platform tells only its log which port it took for the proxy.
  const proxyPort = await freePort(HOST);
  Object.assign(process.env, {
    // The bare script has none either, and takes its arguments from the platform's QEMU. `bench:jail` measures the jail.
    HIBERNAUT_JAIL: "off",
    HIBERNAUT_DATA_DIR: folder,
    XDG_CONFIG_HOME: join(folder, "cfg"),
    HIBERNAUT_API_LISTEN: `${HOST}:0`,
    HIBERNAUT_PROXY_LISTEN: `${HOST}:${proxyPort}`,
    HIBERNAUT_KEEP_WARM: "0", // every wake is to come from the snapshot; `bench:warm` measures the others
  });
  const preload = `--import=${pathToFileURL(join(import.meta.dirname, "wake-trace.mjs")).href}`;
  Object.assign(process.env, { NODE_OPTIONS: preload, HIBERNAUT_BENCH_TRACE: trace });
  /** @type {import("../../scripts/lib/platform.mjs").Platform | undefined} */
  let platform;
  const close = async () => {
    await platform?.call("DELETE", "/apps/wake?force=true").catch(() => {});
    await platform?.call("DELETE", "/apps/bare?force=true").catch(() => {});
    await platform?.stop();
    const uninstall = [join(ROOT, "packages/cli/bin/hibernaut.js"), "uninstall"];
    spawnSync(process.execPath, uninstall, { stdio: ["ignore", "ignore", "inherit"] });
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    platform = await startPlatform();
  } catch (error) {
    await close();
    throw error;
  } finally {
    delete process.env.NODE_OPTIONS;
  }
  return { folder, trace, call: platform.call, target: { host: HOST, port: proxyPort, name: "wake.localhost" }, close };
}

/** @typedef {Awaited<ReturnType<typeof openPlatform>>} Opened */

/** @param {Opened["call"]} call @param {string} app */
async function create(call, app) {
  await call("POST", "/apps", { app_name: app });
  const services = [{ internal_port: PORT, autostop: "off", autostart: true }];
  const config = { image: `oci:${IMAGE}:latest`, guest: { cpus: 1, memory_mb: MEMORY_MB }, services };
  const machine = await call("POST", `/apps/${app}/machines`, { config });
  const path = `/apps/${app}/machines/${machine.machine_id}`;
  const to = async (/** @type {string} */ action, /** @type {string} */ state) => {
    await call("POST", `${path}/${action}`);
    await call("GET", `${path}/wait?state=${state}`);
  };
  await call("GET", `${path}/wait`);
  return { id: String(machine.machine_id), address: String(machine.private_address), path, to };
}

/** Creates a machine that requests at the proxy wake. @param {Opened} platform */
export async function openMachine({ folder, trace, call, target }) {
  const { id, path, to } = await create(call, "wake");
  const snapshots = join(folder, "machines", id, "snapshots");
  let lines = 0;

  /** Returns what wake-trace.mjs noted about the last wake. @returns {Promise<Record<string, number>>} */
  async function traced() {
    for (const end = performance.now() + TRACE_MS; performance.now() < end; await call("GET", "/health")) {
      const found = existsSync(trace) ? readFileSync(trace, "utf8").trimEnd().split("\n") : [];
      if (found.length <= lines) continue;
      lines = found.length;
      return JSON.parse(found.at(-1) ?? "{}");
    }
    throw new Error("wake-trace.mjs noted nothing about this wake: it no longer fits the platform.");
  }
  return {
    /** Returns the files of its snapshot. */
    files() {
      const [generation = ""] = readdirSync(snapshots).filter((name) => !name.startsWith("tmp-"));
      return ["memory", "devices", "manifest.json"].map((name) => join(snapshots, generation, name));
    },
    sleep: () => to("suspend", "suspended"),
    stop: () => to("stop", "stopped"),
    async wake() {
      const answer = await ask(target).catch(async (error) => {
        const { state, state_reason: reason, last_boot: boot } = await call("GET", path);
        throw new Error(
          `A request to the suspended machine failed. The machine: ${JSON.stringify({ state, reason, boot })}.`,
          {
            cause: error,
          },
        );
      });
      return { answer, marks: { began: answer.began, ...(await traced()), answered: answer.firstByte } };
    },
  };
}

/**
 * Returns all that a bare guest needs: the QEMU arguments of a second machine. The platform starts that machine once
 * and stops it, so that its network exists and nothing else uses it.
 *
 * @param {Opened} platform
 * @returns {Promise<import("./bare.mjs").BareOptions>}
 */
export async function bareOptions({ folder, call }) {
  const machine = await create(call, "bare");
  const [program, ...args] = commandLine(machine.id);
  await machine.to("stop", "stopped");
  const own = join(folder, "bare");
  mkdirSync(own);
  const places = [join(folder, "machines", machine.id), join(folder, "run", machine.id)];
  const moved = args.map((arg) =>
    places.reduce((text, place) => text.replaceAll(place, own), arg).replace(/^hibernaut-\w+/, "bare"),
  );
  const layer = readdirSync(folder).find((name) => /^layer-\d+\.ext4$/.test(name)) ?? "";
  return {
    program: program ?? "",
    args: moved,
    directory: own,
    memoryMb: MEMORY_MB,
    layer: join(folder, layer),
    config: { ...imageConfig(), hostname: "bare", network: guestNetwork(machine.address), ports: [PORT], volumes: [] },
    target: { host: machine.address, port: PORT, name: machine.address },
  };
}

/** Returns the command line of a machine's QEMU. @param {string} id */
function commandLine(id) {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      if (args[args.indexOf("-name") + 1]?.startsWith(`hibernaut-${id},`)) return args;
    } catch {
      // The process has ended in the meantime.
    }
  }
  throw new Error(`Machine ${id} has no QEMU process.`);
}

/** Returns what the image says about starting its app. */
function imageConfig() {
  const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(IMAGE, name), "utf8"));
  const blob = (/** @type {{ digest: string }} */ { digest }) => read(`blobs/${digest.replace(":", "/")}`);
  const { config } = blob(blob(read("index.json").manifests[0]).config);
  return {
    args: [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])],
    env: Object.fromEntries(config.Env.map((/** @type {string} */ line) => line.split(/=(.*)/s).slice(0, 2))),
    user: config.User ?? "",
    workdir: config.WorkingDir ?? "/",
  };
}

/**
 * Returns the guest's network configuration, for the host's bridge or for QEMU's user-mode network.
 *
 * @param {string} address
 */
function guestNetwork(address) {
  if (address.startsWith("127.")) return { address: "10.0.2.15/24", gateway: "10.0.2.2", dns: "10.0.2.3", hosts: [] };
  const [{ dev, prefsrc: gateway }] = JSON.parse(runTool("ip", ["-j", "route", "get", address]));
  const [{ addr_info: addresses }] = JSON.parse(runTool("ip", ["-j", "-4", "address", "show", "dev", dev]));
  const { prefixlen } = addresses.find((/** @type {{ local: string }} */ { local }) => local === gateway);
  return { address: `${address}/${prefixlen}`, gateway, dns: gateway, hosts: [] };
}
