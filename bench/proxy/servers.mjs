/** Starts the app and the proxies in front of it, one process each. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../scripts/lib/free-port.mjs";
import { nodeBinary } from "../../scripts/lib/node.mjs";
import { findTool, toolEnvironment } from "../../scripts/lib/test-tools.mjs";
import { cpuMs, memoryMb } from "../lib/processes.mjs";

const HOST = "127.0.0.1";
const START_MS = 20_000;
/** The longest text that nginx reads from its configuration, in bytes. Anything longer comes from a file. */
const LARGEST_TEXT = 2048;

/**
 * @typedef {object} Server
 * @property {string} name
 * @property {number} port
 * @property {() => number} cpuMs CPU time so far, user and system, in milliseconds
 * @property {() => number} rssMb what it has in RAM, in MB
 */

/** Ours, and what you could build on Node instead. Each is a file in `roles/`. */
export const NODE_PROXIES = [
  "hibernaut",
  "engine",
  "spliced",
  "undici",
  "node-http",
  "fastify-http-proxy",
  "http-proxy-3",
];
export const NATIVE_PROXIES = ["nginx", "haproxy", "caddy"];

/** Starts servers, each bound to one CPU, so that the scheduler does not decide a round. */
export class Servers {
  /** @type {import("node:child_process").ChildProcess[]} */
  #children = [];
  #directory;

  /** @param {string} directory For configurations and logs. The caller removes it. */
  constructor(directory) {
    this.#directory = directory;
  }

  /**
   * Starts the app: nginx, because it answers with the least work and leaves the most CPU time to the load.
   *
   * @param {number} cpu
   * @param {number} bytes the size of its response
   */
  async app(cpu, bytes) {
    const port = await freePort();
    const directory = this.#subdirectory("app");
    if (bytes > LARGEST_TEXT) writeFileSync(join(directory, "body"), Buffer.alloc(bytes, "x"));
    const from =
      bytes > LARGEST_TEXT ? `root ${directory}; try_files /body =404;` : `return 200 "${"x".repeat(bytes)}";`;
    const location = `default_type text/plain; ${from}`;
    return this.#nginx("app", cpu, port, `access_log off; keepalive_requests 1000000000; location / { ${location} }`);
  }

  /**
   * @param {string} name
   * @param {number} cpu
   * @param {number} app the app's port
   */
  async proxy(name, cpu, app) {
    if (name === "nginx") return this.#nginxProxy(cpu, app);
    if (name === "caddy") return this.#caddy(cpu, app);
    if (name === "haproxy") return this.#haproxy(cpu, app);
    if (name === "haproxy-tcp") return this.#haproxy(cpu, app, "tcp");
    const directory = this.#subdirectory(name);
    const env = { ...process.env, HIBERNAUT_DATA_DIR: directory, NODE_ENV: "production" };
    const role = name === "c-tcp" ? [] : [join(import.meta.dirname, "roles", `${name}.mjs`)];
    const program = name === "c-tcp" ? compiled(directory) : nodeBinary();
    const child = this.#start(name, cpu, program, [...role, String(app)], env);
    const lines = createInterface(/** @type {import("node:stream").Readable} */ (child.stdout));
    const ended = once(child, "exit").then(() => {
      throw new Error(`${name} ended: ${readFileSync(join(directory, "stderr"), "utf8").slice(-2000)}`);
    });
    const line = once(lines, "line", { signal: AbortSignal.timeout(START_MS) });
    const [port] = await Promise.race([line, ended]);
    ended.catch(() => {});
    return describe(name, child, Number(port));
  }

  close() {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  /** @param {number} cpu @param {number} app */
  async #nginxProxy(cpu, app) {
    const forward = `proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Request-Id $request_id;`;
    const log = join(this.#subdirectory("nginx"), "access.log");
    const server = `access_log ${log}; keepalive_requests 1000000000; location / { ${forward} }`;
    const upstream = `upstream app { server ${HOST}:${app}; keepalive 256; keepalive_requests 1000000000; }`;
    return this.#nginx("nginx", cpu, await freePort(), server, upstream);
  }

  /** @param {string} name @param {number} cpu @param {number} port @param {string} server @param {string} [http] */
  async #nginx(name, cpu, port, server, http = "") {
    const directory = this.#subdirectory(name);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((kind) => `${kind}_temp_path ${directory};`)
      .join(" ");
    const config = `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
      events { worker_connections 4096; }
      http { ${temporary} ${http} server { listen ${HOST}:${port} backlog=4096; ${server} } }`;
    writeFileSync(join(directory, "nginx.conf"), config);
    const args = ["-c", join(directory, "nginx.conf"), "-e", join(directory, "error.log"), "-p", directory];
    const child = this.#start(name, cpu, findTool("nginx"), args, toolEnvironment());
    await answers(port);
    return describe(name, child, port);
  }

  /** @param {number} cpu @param {number} app @param {"http" | "tcp"} [mode] */
  async #haproxy(cpu, app, mode = "http") {
    const port = await freePort();
    const name = mode === "http" ? "haproxy" : "haproxy-tcp";
    const directory = this.#subdirectory(name);
    const config = `global
  nbthread 1
  maxconn 4096
defaults
  mode ${mode}
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  ${mode === "http" ? "option forwardfor" : ""}
  ${mode === "http" ? "http-reuse always" : ""}
frontend f
  bind ${HOST}:${port}
  default_backend b
backend b
  server app ${HOST}:${app}
`;
    writeFileSync(join(directory, "haproxy.cfg"), config);
    const args = ["-db", "-f", join(directory, "haproxy.cfg")];
    const child = this.#start(name, cpu, findTool("haproxy"), args, toolEnvironment());
    await answers(port);
    return describe(name, child, port);
  }

  /** As its documentation sets a reverse proxy up, with its access log. @param {number} cpu @param {number} app */
  async #caddy(cpu, app) {
    const port = await freePort();
    const directory = this.#subdirectory("caddy");
    const config = `{
  admin off
}
http://${HOST}:${port} {
  reverse_proxy ${HOST}:${app}
  log {
    output file ${directory}/access.log
  }
}
`;
    writeFileSync(join(directory, "Caddyfile"), config);
    const args = ["run", "--config", join(directory, "Caddyfile")];
    const home = { HOME: directory, XDG_CONFIG_HOME: directory, XDG_DATA_HOME: directory };
    const child = this.#start("caddy", cpu, findTool("caddy"), args, { ...toolEnvironment(), ...home });
    await answers(port);
    return describe("caddy", child, port);
  }

  /** @param {string} name */
  #subdirectory(name) {
    const directory = join(this.#directory, name);
    mkdirSync(directory, { recursive: true });
    return directory;
  }

  /**
   * @param {string} name
   * @param {number} cpu
   * @param {string} program
   * @param {string[]} args
   * @param {NodeJS.ProcessEnv} env
   */
  #start(name, cpu, program, args, env) {
    const errors = openSync(join(this.#subdirectory(name), "stderr"), "w");
    const child = spawn("taskset", ["-c", String(cpu), program, ...args], { stdio: ["pipe", "pipe", errors], env });
    closeSync(errors);
    this.#children.push(child);
    return child;
  }
}

/** Compiles the splicer in C. Returns its path. @param {string} directory */
function compiled(directory) {
  const program = join(directory, "splice");
  const flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program];
  execFileSync(process.env.CC ?? "cc", [...flags, join(import.meta.dirname, "native/splice.c")], { stdio: "inherit" });
  return program;
}

/**
 * @param {string} name
 * @param {import("node:child_process").ChildProcess} child
 * @param {number} port
 * @returns {Server}
 */
function describe(name, child, port) {
  return { name, port, cpuMs: () => cpuMs(child.pid), rssMb: () => memoryMb(child.pid).rss };
}

/** @param {number} port */
async function answers(port) {
  for (const end = performance.now() + START_MS; ; await delay(10)) {
    const socket = connect(port, HOST);
    const connected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected) return;
    if (performance.now() > end) throw new Error(`Nothing answers on port ${port}.`);
  }
}
