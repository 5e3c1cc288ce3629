/** One QEMU process with its guest. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { flush } from "@hibernaut/lib/durable";
import {
  type HypervisorIdentity,
  type KeptDisks,
  type ThreadTimes,
  type Vmm,
  type VmmRef,
  VmmSilent,
  type VmmUsage,
} from "../contract.ts";
import { devicesFile } from "./arguments.ts";
import { keepOwnMemory, ownMemory, prepareOwnMemory, returnMemory } from "./borrowed-memory.ts";
import { comeLast } from "./come-last.ts";
import { connectToQemu } from "./connect.ts";
import { GuestEnd } from "./guest-end.ts";
import { recordHotPages } from "./hot-pages.ts";
import { shareOwner } from "./jail/owning.ts";
import { keepDisks } from "./kept-disks/kept-disks.ts";
import { removeFilters } from "./kept-disks/nodes.ts";
import { type QemuLimits, USUAL_LIMITS } from "./limits.ts";
import { INHERITED_FD, killProcess, usageOf, watchExit } from "./process.ts";
import { type Qmp, QmpError, QmpTimeout } from "./qmp.ts";
import { atMost, STREAM_CAPABILITIES, saveDevices } from "./save-devices.ts";
import { endStalls } from "./stall.ts";
import { threadTimesOf } from "./thread-times.ts";

/** States of a stream that has ended (MigrationStatus in QEMU's QAPI schema). */
const STREAM_ENDED = new Set(["none", "completed", "failed", "cancelled"]);
const STREAM_POLL_MS = 2;
/** By then, a resumed guest has answered its first request. The pages it touched are those the next resume needs. */
const RECORD_AFTER_MS = 500;

interface MigrationInfo {
  status?: string;
  "error-desc"?: string;
}

/** Where the files of a VMM are. */
interface VmmFiles {
  runDir: string;
  memory: string;
  /** What QEMU and the guest's kernel print. */
  console: string;
  /** How much of that, in bytes, is from before this QEMU. */
  consoleBefore?: number;
  /** The memory is mapped privately: see borrowed-memory.ts. */
  borrowed?: boolean;
}

interface VmmOptions {
  limits?: QemuLimits;
  /** The directory of its control group, where it has one. */
  cgroup?: string | undefined;
}

/** The VMM contract on one QEMU process. */
export class QemuVmm implements Vmm {
  readonly ref: VmmRef;
  readonly identity: HypervisorIdentity;
  listensAt: number | undefined;
  onStalled: (reason: string | undefined) => void = () => {};
  readonly exited: Promise<void>;
  readonly #qmp: Qmp;
  readonly #files: VmmFiles;
  readonly #streamEndMs: number;
  readonly #cgroup: string | undefined;
  readonly #watch = new AbortController();
  readonly #gone = Promise.withResolvers<void>();
  /** Whether a snapshot was loaded and the guest has not run since. */
  #restored = false;
  /** Whether a copy of a borrowed memory is there, to be completed by a capture. */
  #ownPrepared = false;
  /** Disks were kept. What that needs is taken away when it is released, unless QEMU did not answer then. */
  #mayHaveFilters = false;
  /** What is next to a borrowed memory has been deleted. */
  #returned: Promise<void> | undefined;
  #channel: Socket | undefined;
  /** A channel that was opened before the first call of `openChannel`. */
  #early: Socket | undefined;
  readonly #end: GuestEnd;

  constructor(
    ref: VmmRef,
    identity: HypervisorIdentity,
    qmp: Qmp,
    files: VmmFiles,
    { limits = USUAL_LIMITS, cgroup }: VmmOptions = {},
  ) {
    this.#streamEndMs = limits.streamEndMs;
    this.#cgroup = cgroup;
    this.ref = ref;
    this.identity = identity;
    this.#qmp = qmp;
    this.#files = files;
    this.exited = this.#gone.promise;
    endStalls(qmp, this.#watch.signal, (reason) => this.onStalled(reason));
    this.#end = new GuestEnd(ref, qmp, files);
    background(this.#watchExit(), "watching for the end of QEMU");
  }

  /** A released VMM has not exited: its promise stays pending. */
  async #watchExit(): Promise<void> {
    await watchExit(this.ref, this.#watch.signal);
    await this.#end.settled();
    if (this.#watch.signal.aborted) return;
    await this.#return();
    this.#gone.resolve();
  }

  /** Once, and before anyone is told of the end: afterwards, these files may be those of another VMM. */
  #return(): Promise<void> {
    // What cannot be deleted goes at the next start.
    const giveBack = async () => {
      if (this.#files.borrowed === true) await returnMemory(this.#files).catch(() => {});
    };
    this.#returned ??= giveBack();
    return this.#returned;
  }

  get failure(): string | undefined {
    return this.#end.failure;
  }

  usage(): Promise<VmmUsage | undefined> {
    return usageOf(this.ref);
  }

  threadTimes(): Promise<ReadonlyMap<number, ThreadTimes> | undefined> {
    return threadTimesOf(this.ref);
  }

  async ownMemory(): Promise<number> {
    return this.#files.borrowed === true ? ownMemory({ pid: this.ref.pid, memory: this.#files.memory }) : 0;
  }

  comeLast(last: boolean): Promise<boolean> {
    return comeLast(this.ref, this.#cgroup, last);
  }

  async state(): Promise<"running" | "paused"> {
    const { running } = await this.#qmp.execute<{ running: boolean }>("query-status").catch((error: Error) => {
      throw error instanceof QmpTimeout ? new VmmSilent(error.message) : error;
    });
    return running ? "running" : "paused";
  }

  async run(): Promise<void> {
    await this.#qmp.execute("cont");
    if (this.#restored) background(this.#recordHotPages(), "recording the hot pages");
    this.#restored = false;
  }

  /** Records the hot pages once. When that fails, because the guest has ended for instance, the next resume is slower. */
  async #recordHotPages(): Promise<void> {
    await delay(RECORD_AFTER_MS, undefined, { signal: this.#watch.signal, ref: false })
      .then(() => recordHotPages(this.ref.pid, this.#files.memory))
      .catch(() => {});
  }

  async pause(): Promise<void> {
    await this.#qmp.execute("stop");
  }

  async prepareCapture(signal: AbortSignal, { durable } = { durable: true }): Promise<void> {
    if (this.#files.borrowed !== true || this.#ownPrepared) return;
    await prepareOwnMemory({ pid: this.ref.pid, memory: this.#files.memory }, { durable }, signal);
    this.#ownPrepared = true;
  }

  async capture(deviceState: string, signal: AbortSignal, { durable } = { durable: true }): Promise<void> {
    if (this.#mayHaveFilters) await removeFilters(this.#qmp);
    this.#mayHaveFilters = false;
    await this.#qmp.execute("migrate-set-capabilities", { capabilities: STREAM_CAPABILITIES });
    if (this.#files.borrowed === true) return this.#captureBorrowed(deviceState, durable, signal);
    const path = join(this.#files.runDir, "capture.sock");
    await rm(path, { force: true });
    const server = createServer();
    // QEMU blocks as a whole while it writes: a connection that nothing reads must not stay open.
    const sockets = new Set<Socket>();
    let over = false;
    server.on("connection", (socket) => (over ? socket.destroy() : sockets.add(socket)));
    server.listen(path);
    await once(server, "listening");
    await shareOwner(this.#files.memory, path);
    // The end that fails first knows the reason: the writer that cannot write, or QEMU that cannot send.
    const failure = new AbortController();
    const either = AbortSignal.any([signal, failure.signal]);
    const fail = (error: unknown): never => {
      failure.abort(error);
      throw either.reason;
    };
    try {
      const written = once(server, "connection", { signal: either }).then(([socket]) =>
        pipeline(socket as Socket, atMost(), createWriteStream(deviceState, { mode: 0o600, flush: durable }), {
          signal: either,
        }),
      );
      await Promise.all([written.catch(fail), this.#migrate("migrate", `unix:${path}`, either).catch(fail)]);
      if (!durable) return;
      await flush(this.#files.memory);
      await flush(dirname(this.#files.memory));
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

  async #captureBorrowed(to: string, durable: boolean, signal: AbortSignal): Promise<void> {
    await saveDevices(this.#qmp, { written: devicesFile(this.#files.runDir), to, durable }, signal);
    await this.prepareCapture(signal, { durable });
    this.#ownPrepared = false; // whatever becomes of it
    await keepOwnMemory({ pid: this.ref.pid, memory: this.#files.memory }, { durable }, signal);
    signal.throwIfAborted();
  }

  keepDisks(files: readonly string[]): Promise<KeptDisks | undefined> {
    this.#mayHaveFilters = true;
    return keepDisks(this.#qmp, files, { runDir: this.#files.runDir, owned: this.#files.memory });
  }

  /**
   * Waits until QEMU has finished with a stream, completed or cancelled. QEMU reports the end of a stream too early; until
   * the real end it refuses to let the guest continue or to begin another stream.
   */
  async #streamEnded(): Promise<void> {
    for (const end = performance.now() + this.#streamEndMs; performance.now() < end; await delay(STREAM_POLL_MS)) {
      const { status: stream = "none" } = await this.#qmp.execute<MigrationInfo>("query-migrate");
      const { status: guest } = await this.#qmp.execute<{ status: string }>("query-status");
      if (STREAM_ENDED.has(stream) && guest !== "finish-migrate") return;
    }
  }

  /** Loads the device state whose file descriptor QEMU inherited. */
  async load(signal: AbortSignal): Promise<void> {
    // Connected before the state is loaded: the guest then finds its channel as it was, with no change to handle.
    this.#early = await connectToQemu(join(this.#files.runDir, "agent.sock"), signal);
    await this.#qmp.execute("migrate-set-capabilities", { capabilities: STREAM_CAPABILITIES });
    await this.#migrate("migrate-incoming", `fd:${INHERITED_FD}`, signal);
    this.#restored = true;
  }

  async openChannel(signal: AbortSignal): Promise<Duplex> {
    this.#channel?.destroy();
    this.#channel = this.#early ?? (await connectToQemu(join(this.#files.runDir, "agent.sock"), signal));
    this.#early = undefined;
    return this.#channel;
  }

  async kill(): Promise<void> {
    await killProcess(this.ref);
    await this.#end.settled();
    await this.#return();
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
      background(
        this.exited.then(() => done.reject(new QmpError("QEMU has ended"))),
        "noticing the end of QEMU",
      );
      await abortable(done.promise, signal);
    } catch (error) {
      const info = await this.#qmp.execute<MigrationInfo>("query-migrate").catch((): MigrationInfo => ({}));
      throw info["error-desc"] === undefined ? error : new QmpError(info["error-desc"]);
    } finally {
      unsubscribe();
    }
  }
}
