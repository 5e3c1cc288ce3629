#!/usr/bin/env node
/**
 * How many requests the proxy's HTTP engine forwards: `node bench/proxy.mjs`. Side by side in one run, in rounds
 * that alternate: the app asked directly, through the engine, and through a minimal proxy on node:http. App and
 * proxies are processes of their own; load comes from wrk if there is one, else from autocannon. Prints medians.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer as createHttpServer, request as httpRequest } from "node:http";
import { createServer } from "node:net";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const ENGINE = join(import.meta.dirname, "../packages/platform/src/proxy/http/server.ts");
const HOST = "127.0.0.1";

const { values } = parseArgs({
  options: {
    role: { type: "string" },
    app: { type: "string", default: "0" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "64" },
    /** Bytes of the app's response. */
    bytes: { type: "string", default: "100" },
  },
});
const appPort = Number(values.app);

/** Answers every read, which holds one request, with the same bytes: as little work as an app can have. */
async function serveApp() {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${values.bytes}\r\n\r\n`;
  const response = Buffer.from(head + "x".repeat(Number(values.bytes)));
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {}).on("data", () => socket.write(response));
  }).listen(0, HOST);
  await once(server, "listening");
  return portOf(server);
}

/** The engine as it is used: a lease for each request, and a line for the access log. */
async function serveEngine() {
  /** @type {typeof import("../packages/platform/src/proxy/http/server.ts")} */
  const { createProxyServer } = await import(ENGINE);
  let lines = 0;
  const proxy = createProxyServer({
    onAccess: () => {
      lines += 1;
    },
    director: {
      acquire: async () => ({
        address: HOST,
        port: appPort,
        machineId: "m1",
        appName: "bench",
        wake: { kind: "running", durationMs: 0 },
        connectDeadline: 0,
        release() {},
      }),
    },
  });
  return (await proxy.listen({ host: HOST, port: 0 })).port;
}

/** What one would write first: no checks, no retries, no log. */
async function serveNodeHttp() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1024 });
  const server = createHttpServer((request, response) => {
    const { method = "GET", url = "/", headers } = request;
    const onward = httpRequest({ host: HOST, port: appPort, method, path: url, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  }).listen(0, HOST);
  await once(server, "listening");
  return portOf(server);
}

/** @param {import("node:net").Server} server */
function portOf(server) {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** @type {Record<string, () => Promise<number>>} */
const ROLES = { app: serveApp, engine: serveEngine, node_http: serveNodeHttp };

/** @type {import("node:child_process").ChildProcess[]} */
const children = [];

/**
 * A process of this file in a role; resolves with its port.
 *
 * @param {string} role
 * @param {number} app
 */
async function start(role, app) {
  const args = [import.meta.filename, "--role", role, "--app", String(app), "--bytes", values.bytes];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  const [line] = await once(createInterface(child.stdout), "line", { signal: AbortSignal.timeout(20_000) });
  return Number(line);
}

const hasWrk = spawnSync("wrk", ["-v"]).error === undefined;

/**
 * @typedef {{ rps: number, p50: number, p99: number }} Sample
 * @param {number} port
 * @returns {Promise<Sample>}
 */
async function load(port) {
  const url = `http://${HOST}:${port}/`;
  if (!hasWrk) {
    const { default: autocannon } = await import("autocannon");
    const result = await autocannon({ url, connections: Number(values.connections), duration: Number(values.seconds) });
    return { rps: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 };
  }
  const args = ["-t1", `-c${values.connections}`, `-d${values.seconds}s`, "--latency", url];
  const child = spawn("wrk", args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  await once(child, "close");
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`The load met errors.\n${text}`);
  const at = (/** @type {string} */ name) => milliseconds(new RegExp(`${name}\\s+([\\d.]+)(us|ms|s)`).exec(text));
  return { rps: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]), p50: at("50%"), p99: at("99%") };
}

/** @param {RegExpExecArray | null} match */
function milliseconds(match) {
  const factor = { us: 0.001, ms: 1, s: 1000 }[match?.[2] ?? ""] ?? Number.NaN;
  return Number(match?.[1]) * factor;
}

/** @param {number[]} samples */
function median(samples) {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
}

async function main() {
  const app = await start("app", 0);
  const ports = { direct: app, engine: await start("engine", app), node_http: await start("node_http", app) };
  /** @type {Record<string, Sample[]>} */
  const samples = Object.fromEntries(Object.keys(ports).map((name) => [name, []]));
  for (const port of Object.values(ports)) await load(port); // warms up
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const [name, port] of Object.entries(ports)) samples[name]?.push(await load(port));
  const tool = hasWrk ? "wrk" : "autocannon";
  console.log(`${tool}, ${values.connections} connections, ${values.rounds} rounds of ${values.seconds} s each,`);
  console.log(`responses of ${values.bytes} bytes; ${cpus().length} CPUs, load ${loadavg()[0]?.toFixed(1)}`);
  console.log("            requests/s   p50 ms   p99 ms");
  for (const [name, all] of Object.entries(samples)) {
    const of = (/** @type {keyof Sample} */ key) => median(all.map((sample) => sample[key]));
    const columns = [
      of("rps").toFixed(0).padStart(10),
      of("p50").toFixed(2).padStart(8),
      of("p99").toFixed(2).padStart(8),
    ];
    console.log(`${name.padEnd(11)} ${columns.join(" ")}`);
  }
}

if (values.role !== undefined) {
  // The parent's end is this process's end.
  process.stdin.resume().on("end", () => process.exit());
  console.log(await ROLES[values.role]?.());
} else
  try {
    await main();
  } finally {
    for (const child of children) child.kill();
  }
