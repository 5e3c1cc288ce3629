/**
 * Preloaded into the platform (`--import`). Notes when each part of a wake begins, as seen from outside: by the
 * processes that the platform starts and the sockets that it opens. All it adds to a wake is a look at the clock for
 * each part. Appends one line of JSON for each wake to `trace.jsonl` in the data directory.
 */
import { ChildProcess } from "node:child_process";
import { appendFileSync } from "node:fs";
import { Server, Socket } from "node:net";
import { basename, join } from "node:path";

const FILE = join(process.env.HIBERNAUT_DATA_DIR ?? "", "trace.jsonl");
const now = () => Number(process.hrtime.bigint()) / 1e6;

let accepted = Number.NaN;
/** @type {Record<string, number> | undefined} The wake in progress. */
let marks;

/** @param {string} name */
function mark(name) {
  if (marks !== undefined) marks[name] ??= now();
}

function finish() {
  const line = JSON.stringify(marks);
  marks = undefined;
  setImmediate(() => appendFileSync(FILE, `${line}\n`));
}

/** Patches prototypes, which Node's types rightly don't allow. @type {any} */
const [server, child, socket] = [Server.prototype, ChildProcess.prototype, Socket.prototype];

const { emit } = server;
server.emit = function (/** @type {string} */ event, /** @type {unknown[]} */ ...args) {
  if (event === "connection") accepted = now();
  return emit.call(this, event, ...args);
};

const { spawn } = child;
child.spawn = function (/** @type {{ args?: string[] }} */ options) {
  const guest = options.args?.includes("-qmp") === true;
  if (guest) marks = { accepted, spawn: now() };
  const result = spawn.call(this, options);
  if (guest) mark("spawned");
  return result;
};

const { connect, push, write } = socket;
/** @this {any} @param {any[]} args */
socket.connect = function (...args) {
  const options = [args[0]].flat()[0];
  if (marks !== undefined && typeof options === "object") {
    // A failed attempt is followed by another one. The last attempt counts.
    this.edge = options.path === undefined ? "guest" : basename(options.path);
    if (this.edge === "guest") mark("connect");
    this.once("connect", () => mark(this.edge === "guest" ? "connected" : this.edge));
  }
  return connect.apply(this, args);
};
/** @this {any} @param {unknown} data @param {unknown[]} rest */
socket.write = function (data, ...rest) {
  if (this.edge === "qmp.sock" && typeof data === "string") {
    if (data.includes('"migrate-incoming"')) mark("load");
    if (data.includes('"cont"')) mark("cont");
  }
  return write.call(this, data, ...rest);
};
/** @this {any} @param {any} data @param {unknown[]} rest */
socket.push = function (data, ...rest) {
  if (marks !== undefined && data !== null) {
    if (this.edge === "qmp.sock" && String(data).includes('"completed"')) mark("loaded");
    if (this.edge === "agent.sock" && marks.cont !== undefined && marks.connect === undefined) marks.awake = now();
    if (this.edge === "guest") {
      mark("first");
      finish();
    }
  }
  return push.call(this, data, ...rest);
};
