/** One QEMU process with its guest. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { abortable } from "../../lib/async.ts";
import { flush } from "../../lib/durable.ts";
import type { HypervisorIdentity, Vmm, VmmRef } from "../contract.ts";
import { connectToQemu } from "./connect.ts";
import { noteHotPages } from "./hot-pages.ts";
import { GIVEN_FILE, killProcess, watchExit } from "./process.ts";
import { type Qmp, QmpError } from "./qmp.ts";
import { keepGoing } from "./stall.ts";

/** The memory file is shared with the guest, so only the devices' state goes through the stream. */
const CAPABILITIES = ["x-ignore-shared", "events"].map((capability) => ({ capability, state: true }));
/** States of a stream that QEMU is done with (MigrationStatus in its QAPI schema). */
const STREAM_ENDED = new Set(["none", "completed", "failed", "cancelled"]);
/** Ending takes a few milliseconds; a QEMU that needs longer has other troubles. */
const STREAM_END_MS = 5000;
const STREAM_POLL_MS = 2;
/** By then a guest that woke has answered the first request: what it touched is what the next wake needs. */
const AWAKE_FOR_MS = 500;

interface MigrationInfo {
  status?: string;
  "error-desc"?: string;
}

export class QemuVmm implements Vmm {
  readonly ref: VmmRef;
  readonly identity: HypervisorIdentity;
  onStalled: (reason: string | undefined) => void = () => {};
  readonly exited: Promise<void>;
  readonly #qmp: Qmp;
  readonly #runDir: string;
  readonly #memory: string;
  readonly #watch = new AbortController();
  readonly #gone = Promise.withResolvers<void>();
  /** Its state was loaded, and it has not run since. */
  #restored = false;
  #channel: Socket | undefined;
  /** A channel that nobody has asked for yet. */
  #early: Socket | undefined;

  constructor(ref: VmmRef, identity: HypervisorIdentity, qmp: Qmp, runDir: string, memory: string) {
    this.ref = ref;
    this.identity = identity;
    this.#qmp = qmp;
    this.#runDir = runDir;
    this.#memory = memory;
    this.exited = this.#gone.promise;
    // A released VMM has not exited: its promise stays open.
    void watchExit(ref, this.#watch.signal).then(() => this.#watch.signal.aborted || this.#gone.resolve());
    keepGoing(qmp, this.#watch.signal, (reason) => this.onStalled(reason));
  }

  async state(): Promise<"running" | "paused"> {
    const { running } = await this.#qmp.execute<{ running: boolean }>("query-status");
    return running ? "running" : "paused";
  }

  async run(): Promise<void> {
    await this.#qmp.execute("cont");
    if (this.#restored) void this.#noteHotPages();
    this.#restored = false;
  }

  /** A while after a guest woke, once. It may be gone by then, or the kernel may not tell: the next wake does without. */
  async #noteHotPages(): Promise<void> {
    await delay(AWAKE_FOR_MS, undefined, { signal: this.#watch.signal, ref: false })
      .then(() => noteHotPages(this.ref.pid, this.#memory))
      .catch(() => {});
  }

  async pause(): Promise<void> {
    await this.#qmp.execute("stop");
  }

  async capture(deviceState: string, signal: AbortSignal): Promise<void> {
    await this.#qmp.execute("migrate-set-capabilities", { capabilities: CAPABILITIES });
    const path = join(this.#runDir, "capture.sock");
    await rm(path, { force: true });
    const server = createServer();
    // QEMU stands still as a whole while it writes: a connection that nobody reads must not stay open.
    const sockets = new Set<Socket>();
    let over = false;
    server.on("connection", (socket) => (over ? socket.destroy() : sockets.add(socket)));
    server.listen(path);
    await once(server, "listening");
    // Whichever end fails first knows the reason: a writer that cannot write, or QEMU that cannot send.
    const failure = new AbortController();
    const either = AbortSignal.any([signal, failure.signal]);
    const fail = (error: unknown): never => {
      failure.abort(error);
      throw either.reason;
    };
    try {
      const written = once(server, "connection", { signal: either }).then(([socket]) =>
        pipeline(socket as Socket, createWriteStream(deviceState, { mode: 0o600, flush: true }), { signal: either }),
      );
      await Promise.all([written.catch(fail), this.#migrate("migrate", `unix:${path}`, either).catch(fail)]);
      await flush(this.#memory);
      await flush(dirname(this.#memory));
    } catch (error) {
      over = true;
      for (const socket of sockets) socket.destroy();
      await this.#qmp.execute("migrate_cancel").catch(() => {});
      throw error;
    } finally {
      over = true;
      await this.#streamEnded().catch(() => {});
      server.close();
      await rm(path, { force: true });
    }
    signal.throwIfAborted();
  }

  /**
   * Waits until QEMU has cleared a state stream away, whole or cancelled. It says that the stream has ended before it
   * has; until then it refuses to let the guest go on, and to begin another.
   */
  async #streamEnded(): Promise<void> {
    for (const end = performance.now() + STREAM_END_MS; performance.now() < end; await delay(STREAM_POLL_MS)) {
      const { status: stream = "none" } = await this.#qmp.execute<MigrationInfo>("query-migrate");
      const { status: guest } = await this.#qmp.execute<{ status: string }>("query-status");
      if (STREAM_ENDED.has(stream) && guest !== "finish-migrate") return;
    }
  }

  /** Loads the device state that QEMU was given at its start, and waits to load. */
  async load(signal: AbortSignal): Promise<void> {
    // Before the state comes: a guest that finds its channel as it left it has nothing to learn about it.
    this.#early = await connectToQemu(join(this.#runDir, "agent.sock"), signal);
    await this.#qmp.execute("migrate-set-capabilities", { capabilities: CAPABILITIES });
    await this.#migrate("migrate-incoming", `fd:${GIVEN_FILE}`, signal);
    this.#restored = true;
  }

  async openChannel(signal: AbortSignal): Promise<Duplex> {
    this.#channel?.destroy();
    this.#channel = this.#early ?? (await connectToQemu(join(this.#runDir, "agent.sock"), signal));
    this.#early = undefined;
    return this.#channel;
  }

  async kill(): Promise<void> {
    await killProcess(this.ref);
    this.release();
    this.#gone.resolve();
  }

  release(): void {
    this.#watch.abort();
    this.#channel?.destroy();
    this.#early?.destroy();
    this.#qmp.close();
  }

  async #migrate(command: string, uri: string, signal: AbortSignal): Promise<void> {
    const done = Promise.withResolvers<void>();
    const unsubscribe = this.#qmp.subscribe(({ event, data }) => {
      if (event !== "MIGRATION") return;
      if (data.status === "completed") done.resolve();
      if (data.status === "failed" || data.status === "cancelled")
        done.reject(new QmpError(`the state stream ${data.status}`));
    });
    done.promise.catch(() => {});
    try {
      await this.#qmp.execute(command, { uri });
      void this.exited.then(() => done.reject(new QmpError("QEMU ended")));
      await abortable(done.promise, signal);
    } catch (error) {
      const info = await this.#qmp.execute<MigrationInfo>("query-migrate").catch((): MigrationInfo => ({}));
      throw info["error-desc"] === undefined ? error : new QmpError(info["error-desc"]);
    } finally {
      unsubscribe();
    }
  }
}
