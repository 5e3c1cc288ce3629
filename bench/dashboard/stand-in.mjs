/**
 * A stand-in for a platform with many machines that change all the time: it serves the built dashboard, and replies like
 * the API as far as the overview asks. No machine is behind it.
 */
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { machine as machineWith } from "../../packages/dashboard/test/a-machine.ts";

const DIST = join(import.meta.dirname, "../../packages/dashboard/dist");
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const HOUR_MS = 3_600_000;
/** The way of a machine through its states, and what leads to each. */
const WAY = /** @type {const} */ ({
  suspended: ["starting", "start"],
  starting: ["running", "started"],
  running: ["suspending", "suspend"],
  suspending: ["suspended", "captured"],
});
const KINDS = /** @type {const} */ (["warm", "resume", "cold"]);
const KIND_MS = { warm: 12, resume: 240, cold: 4200 };

/** @typedef {keyof typeof WAY} State */

/** A random number generator with a seed, so that every run has the same machines. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

/**
 * Starts the stand-in on a free port of loopback.
 *
 * @param {{ machines: number, seed: number }} options
 */
export async function startStandIn({ machines, seed }) {
  const random = randomFrom(seed);
  const world = makeWorld(machines, random);
  /** @type {Set<import("node:http").ServerResponse>} */
  const streams = new Set();
  let sequence = 1;

  /** Lets one machine take its next step, and tells it. @param {number} index */
  const step = (index) => {
    const machine = world[index % world.length];
    const way = WAY[/** @type {State} */ (machine?.state)];
    if (machine === undefined || way === undefined) return;
    const [to, event] = way;
    const from = machine.state;
    const at = new Date().toISOString();
    machine.state = to;
    machine.updated_at = at;
    if (to === "running") machine.last_boot = startOf(random, at);
    const data = { name: machine.name, event, from, to, ...(to === "running" && { start: machine.last_boot }) };
    const { app_name, machine_id } = machine;
    sequence++;
    const text = JSON.stringify({ sequence, at, type: `machine.${to}`, app_name, machine_id, data });
    for (const stream of streams) stream.write(`id: ${sequence}\nevent: machine.${to}\ndata: ${text}\n\n`);
  };

  const server = createServer((request, reply) => {
    const url = new URL(request.url ?? "/", "http://stand-in");
    const path = url.pathname;
    if (path === "/v1/stream") {
      reply.writeHead(200, { "content-type": "text/event-stream" }).write(`retry: 1000\n\nid: ${sequence}\n\n`);
      streams.add(reply);
      reply.on("close", () => streams.delete(reply));
      return;
    }
    if (path.startsWith("/v1/")) {
      const body = answer(path, { world, random });
      reply.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
      reply.end(
        JSON.stringify(body ?? { error: "not_found", message: "There is nothing here.", details: {}, request_id: "r" }),
      );
      return;
    }
    sendFile(path, reply);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    step,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** @param {string} path @param {import("node:http").ServerResponse} reply */
function sendFile(path, reply) {
  const file = join(DIST, path);
  const isFile = extname(path) !== "" && file.startsWith(DIST) && statSync(file, { throwIfNoEntry: false })?.isFile();
  const name = isFile ? file : join(DIST, "index.html");
  const type = TYPES[/** @type {keyof typeof TYPES} */ (extname(name))] ?? "application/octet-stream";
  reply.writeHead(200, { "content-type": type, "content-security-policy": POLICY }).end(readFileSync(name));
}

/** @param {() => number} random @param {string} at */
function startOf(random, at) {
  const kind = KINDS[Math.floor(random() * KINDS.length)] ?? "resume";
  return {
    kind,
    reason: kind === "cold" ? "first_start" : "snapshot",
    at,
    duration_ms: Math.ceil(KIND_MS[kind] * (0.6 + random())),
  };
}

const APPS = 10;
const STATES = /** @type {const} */ (["suspended", "running", "suspended", "suspended"]);

/** @param {number} machines @param {() => number} random */
function makeWorld(machines, random) {
  const now = Date.now();
  return Array.from({ length: machines }, (_one, index) => {
    const app = `app-${String(index % APPS).padStart(2, "0")}`;
    const id = (0xa0000000000000n + BigInt(index) * 7919n).toString(16).slice(0, 14);
    const failed = index % 97 === 96;
    const state = failed ? "failed" : (STATES[index % STATES.length] ?? "running");
    const time = new Date(now).toISOString();
    return {
      ...machineWith({ machine_id: id, app_name: app, name: `web-${index}`, state, updated_at: time }),
      state_reason: failed
        ? "QEMU could not be started: there is not enough memory. Stop other machines, then start it again."
        : null,
      last_boot: startOf(random, time),
      created_at: new Date(now - 30 * HOUR_MS).toISOString(),
      spans: spansOf(random, now, state),
    };
  });
}

/** @param {() => number} random @param {number} now @param {string} last */
function spansOf(random, now, last) {
  const spans = [];
  const asleep = random() < 0.3 ? "stopped" : "suspended";
  for (let at = now - 24 * HOUR_MS, awake = false; at < now; awake = !awake) {
    const until = Math.min(now, at + (awake ? 5 + random() * 40 : 20 + random() * 180) * 60_000);
    const warm = !awake && random() < 0.3 ? Math.min(until, at + 600_000) : at;
    if (warm > at) spans.push({ state: "warm", from: new Date(at).toISOString(), until: new Date(warm).toISOString() });
    const state = awake ? "running" : asleep;
    if (warm < until) spans.push({ state, from: new Date(warm).toISOString(), until: new Date(until).toISOString() });
    at = until;
  }
  const end = spans.at(-1);
  if (end !== undefined) end.state = last;
  return spans;
}

/** @param {string} path @param {{ world: ReturnType<typeof makeWorld>, random: () => number }} context */
function answer(path, { world, random }) {
  const apps = [...new Set(world.map(({ app_name }) => app_name))];
  const now = Date.now();
  const [from, until] = [new Date(now - 24 * HOUR_MS).toISOString(), new Date(now).toISOString()];
  switch (path) {
    case "/v1/session":
      return { token: { id: "3f9c01ab22de", name: "stand-in" }, scopes: ["admin"], apps: null, expires_at: null };
    case "/v1/apps":
      return {
        apps: apps.map((name) => ({
          name,
          created_at: from,
          machine_count: world.length / apps.length,
          urls: [`http://${name}.localhost:8080/`],
        })),
      };
    case "/v1/machines":
      return world.map(({ spans: _spans, ...machine }) => machine);
    case "/v1/timeline":
      return { from, until, machines: world.map(timelineOf) };
    case "/v1/wakes":
      return {
        from,
        until,
        hours: Array.from({ length: 24 }, (_hour, index) => wakesOf(random, now - (24 - index) * HOUR_MS)),
      };
    case "/v1/usage":
      return usageOf(world.length);
    case "/v1/health":
      return { status: "ok", version: "0.1.0" };
  }
  const machine = world.find(({ machine_id }) => path.endsWith(`/machines/${machine_id}`));
  if (machine === undefined) return undefined;
  const { spans: _spans, ...shown } = machine;
  return shown;
}

/** @param {ReturnType<typeof makeWorld>[number]} machine */
function timelineOf({ app_name, machine_id, name, state, spans }) {
  const wakes = spans
    .filter((span) => span.state === "running")
    .map(({ from: at }, index) => ({
      at,
      kind: KINDS[index % 3],
      reason: index % 3 === 2 ? "snapshot_missing" : "snapshot",
      duration_ms: KIND_MS[KINDS[index % 3] ?? "warm"],
    }));
  return { app_name, machine_id, name, state, spans, wakes, wakes_left_out: 0 };
}

/** @param {() => number} random @param {number} at */
function wakesOf(random, at) {
  /** @param {keyof typeof KIND_MS} kind */
  const figures = (kind) => ({
    count: Math.ceil(random() * 20),
    p50_ms: Math.ceil(KIND_MS[kind] * (0.8 + random() / 3)),
    p99_ms: Math.ceil(KIND_MS[kind] * (2 + random())),
  });
  return {
    from: new Date(at).toISOString(),
    kinds: { warm: figures("warm"), resume: figures("resume"), ...(random() < 0.5 && { cold: figures("cold") }) },
  };
}

/** @param {number} machines */
function usageOf(machines) {
  const seconds = machines * 30 * 86_400;
  const total = {
    running_seconds: seconds * 0.06,
    suspended_seconds: seconds * 0.9,
    stopped_seconds: seconds * 0.04,
    wakes: { resume: 400, cold: 12 },
    cost: { cpu: 1, memory: 1, storage: 1, total: 41.3, if_always_running: 688.2, saved_by_sleeping: 646.9 },
  };
  return {
    from: "2026-01-01T00:00:00Z",
    to: "2026-01-31T00:00:00Z",
    group_by: "app",
    currency: "EUR",
    usage: [],
    total,
  };
}
