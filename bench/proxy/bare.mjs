/**
 * A guest that is suspended and resumed by QEMU and nothing else: the reference for the platform's wake.
 *
 * Its wake is the least that is correct: start QEMU on the memory file, load the device state, let the guest continue,
 * and ask the app until it answers. There is no proxy, no store, no check and no clock. Its suspend is not measured. It
 * gives each wake a new snapshot, as on the platform, so that no file has to be copied.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, createWriteStream, fsyncSync, openSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { GuestAgent } from "@hibernaut/guest";
import { runTool } from "./wake-files.mjs";
import { askUntilAnswered, now } from "./wake-request.mjs";

const RETRY_MS = 2;
/** Slower during a boot, because each connection costs a guest time that has not started its app yet. */
const BOOT_RETRY_MS = 20;
const BOOT_MS = 120_000;
const CAPABILITIES = ["x-ignore-shared", "events"].map((capability) => ({ capability, state: true }));
/** The file descriptor from which QEMU reads the device state. */
const STATE = 3;

/**
 * @typedef {object} BareOptions
 * @property {string} program QEMU.
 * @property {string[]} args Its arguments, except for those that choose between boot and resume. All files that it
 *   writes are in `directory`.
 * @property {string} directory Its memory, writable layer and sockets, under the platform's names.
 * @property {number} memoryMb
 * @property {string} layer An empty writable layer to copy.
 * @property {import("@hibernaut/guest").GuestConfig} config What to start the app with.
 * @property {import("./wake-request.mjs").Target} target
 *
 * @typedef {Record<string, number>} Marks The time of each named moment, in milliseconds.
 */

/** @param {BareOptions} options */
export function openBare({ program, args, directory, memoryMb, layer, config, target }) {
  const [memory, devices] = [join(directory, "memory"), join(directory, "devices")];
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let qemu;
  /** @type {Qmp | undefined} */
  let qmp;

  /** @param {string[]} more @param {number | "ignore"} state */
  function start(more, state) {
    const log = openSync(join(directory, "qemu.log"), "a");
    qemu = spawn(program, [...args, ...more], { detached: true, stdio: ["ignore", log, log, state] });
    qemu.once("error", () => {}); // "exit" reports it, too
    closeSync(log);
  }

  function kill() {
    if (qemu?.pid !== undefined && qemu.exitCode === null && qemu.signalCode === null) qemu.kill("SIGKILL");
  }

  return {
    files: [memory, devices],
    kill,

    /** Boots the guest and measures from QEMU's start to the app's first byte. */
    async boot() {
      runTool("cp", ["--sparse=always", "--reflink=auto", layer, join(directory, "layer.ext4")]);
      rmSync(memory, { force: true });
      runTool("fallocate", ["--length", `${memoryMb}MiB`, memory]);
      rmSync(join(directory, "agent.sock"), { force: true });
      rmSync(join(directory, "qmp.sock"), { force: true });
      /** @type {Marks} */
      const marks = { began: now() };
      start([], "ignore");
      const agent = new GuestAgent(await open(join(directory, "agent.sock")));
      marks.qemu = now();
      const limit = AbortSignal.timeout(BOOT_MS);
      await agent.hello(limit);
      marks.booted = now();
      await agent.run(config, limit);
      marks.started = now();
      const answer = await askUntilAnswered(target, BOOT_RETRY_MS);
      qmp = await Qmp.open(join(directory, "qmp.sock"));
      return {
        answer,
        marks: { ...marks, connect: answer.began, connected: answer.connected, first: answer.firstByte },
      };
    },

    /** Resumes the guest and measures from QEMU's start to the app's first byte. */
    async wake() {
      rmSync(join(directory, "agent.sock"), { force: true });
      rmSync(join(directory, "qmp.sock"), { force: true });
      const state = openSync(devices, "r");
      /** @type {Marks} */
      const marks = { began: now() };
      start(["-S", "-incoming", "defer"], state);
      closeSync(state);
      marks.spawned = now();
      qmp = await Qmp.open(join(directory, "qmp.sock"));
      marks.qmp = now();
      // The guest finds its channel open, as it was at the suspend. What it sends is thrown away.
      void open(join(directory, "agent.sock")).then((channel) => channel.resume());
      await qmp.execute("migrate-set-capabilities", { capabilities: CAPABILITIES });
      marks.load = now();
      await qmp.migrate("migrate-incoming", `fd:${STATE}`);
      marks.loaded = now();
      void qmp.execute("cont");
      marks.cont = now();
      const answer = await askUntilAnswered(target, RETRY_MS);
      return {
        answer,
        marks: { ...marks, connect: answer.began, connected: answer.connected, first: answer.firstByte },
      };
    },

    /** Suspends the guest: writes its state, makes it durable, and ends QEMU. */
    async sleep() {
      if (qemu === undefined || qmp === undefined) throw new Error("The bare guest is not running.");
      await qmp.execute("stop");
      await qmp.execute("migrate-set-capabilities", { capabilities: CAPABILITIES });
      const socket = join(directory, "state.sock");
      rmSync(socket, { force: true });
      const server = createServer().listen(socket);
      const written = once(server, "connection").then(([stream]) => pipeline(stream, createWriteStream(devices)));
      await Promise.all([written, qmp.migrate("migrate", `unix:${socket}`)]);
      server.close();
      await this.end();
      for (const file of [memory, devices]) {
        const fd = openSync(file, "r");
        fsyncSync(fd);
        closeSync(fd);
      }
    },

    /** Ends QEMU if it is running. */
    async end() {
      if (qemu === undefined) return;
      const gone = qemu.exitCode === null && qemu.signalCode === null ? once(qemu, "exit") : undefined;
      kill();
      await gone;
      qmp?.close();
      qemu = undefined;
      qmp = undefined;
    },
  };
}

/**
 * Connects to a socket that QEMU is about to create.
 *
 * @param {string} path
 * @returns {Promise<import("node:net").Socket>}
 */
async function open(path) {
  for (const deadline = now() + BOOT_MS; ; ) {
    const socket = connect(path);
    try {
      await once(socket, "connect");
      return socket.on("error", () => {});
    } catch (error) {
      if (now() > deadline) throw error;
      await delay(RETRY_MS);
    }
  }
}

/** A client of QEMU's monitor: one command at a time. */
class Qmp {
  #socket;
  /** @type {Set<(message: any) => void>} */
  #listeners = new Set();

  /** @param {import("node:net").Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    const lines = createInterface(socket);
    lines.on("error", () => {}); // the socket reports the same error
    lines.on("line", (line) => {
      for (const listener of this.#listeners) listener(JSON.parse(line));
    });
  }

  /** @param {string} path */
  static async open(path) {
    const qmp = new Qmp(await open(path));
    await qmp.execute("qmp_capabilities");
    return qmp;
  }

  close() {
    this.#socket.destroy();
  }

  /** @param {string} execute @param {object} [args] */
  async execute(execute, args = {}) {
    const answer = this.#message((message) => "return" in message || "error" in message);
    this.#socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    const { error } = await answer;
    if (error !== undefined) throw new Error(`QEMU refused ${execute}: ${error.desc}`);
  }

  /** Saves or loads the device state. @param {string} command @param {string} uri */
  async migrate(command, uri) {
    const end = this.#message(({ event, data }) => event === "MIGRATION" && /completed|failed/.test(data.status));
    await this.execute(command, { uri });
    const { data } = await end;
    if (data.status !== "completed") throw new Error(`QEMU's ${command} failed. See qemu.log.`);
  }

  /** @param {(message: any) => boolean} wanted @returns {Promise<any>} */
  #message(wanted) {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error("QEMU ended. See qemu.log."));
      const listener = (/** @type {any} */ message) => {
        if (!wanted(message)) return;
        this.#listeners.delete(listener);
        this.#socket.off("close", gone);
        resolve(message);
      };
      this.#listeners.add(listener);
      this.#socket.once("close", gone);
    });
  }
}
