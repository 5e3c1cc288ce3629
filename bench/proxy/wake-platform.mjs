/** Starts the platform with a machine to wake, and finds out how to start the same guest with bare QEMU. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startOwnPlatform } from "../../scripts/lib/own-platform.mjs";
import { createCounter, MEMORY_MB, PORT } from "../lib/counter.mjs";
import { runTool } from "./wake-files.mjs";
import { ask } from "./wake-request.mjs";

const LAYOUT = join(import.meta.dirname, "../../.build/counter");
const TRACE_MS = 2_000;

/** Starts the platform on a temporary data directory. */
export async function openPlatform() {
  const { dataDir, call, port, close } = await startOwnPlatform({
    // The bare script has none either, and takes its arguments from the platform's QEMU. `bench:jail` measures the jail.
    HIBERNAUT_JAIL: "off",
    HIBERNAUT_KEEP_WARM: "0", // every wake is to come from the snapshot; `bench:warm` measures the others
    NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "wake-trace.mjs")).href}`,
  });
  return {
    folder: dataDir,
    call,
    target: { host: "127.0.0.1", port, name: "wake.localhost" },
    async close() {
      for (const app of ["wake", "bare"]) await call("DELETE", `/apps/${app}?force=true`).catch(() => {});
      await close();
    },
  };
}

/** @typedef {Awaited<ReturnType<typeof openPlatform>>} Opened */

/** @param {Opened["call"]} call @param {string} app */
async function create(call, app) {
  await call("POST", "/apps", { app_name: app });
  return createCounter(call, app);
}

/** Creates a machine that requests at the proxy wake. @param {Opened} platform */
export async function openMachine({ folder, call, target }) {
  const trace = join(folder, "trace.jsonl");
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
  const read = (/** @type {string} */ name) => JSON.parse(readFileSync(join(LAYOUT, name), "utf8"));
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
