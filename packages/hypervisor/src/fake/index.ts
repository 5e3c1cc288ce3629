/**
 * A hypervisor in memory, for fast tests. {@link FakeHost} keeps what a real host keeps when the platform is killed, and
 * a second {@link FakeHypervisor} on the same host finds it again.
 */
import { readFileSync } from "node:fs";
import { copyFile, link, open, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { type Duplex, duplexPair } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Listener } from "@hibernaut/guest";
import {
  besideMemory,
  type DeviceState,
  type Hypervisor,
  type HypervisorIdentity,
  type KeptDisks,
  type ThreadTimes,
  type Vmm,
  VmmFailed,
  VmmHeld,
  VmmKilled,
  type VmmRef,
  type VmmSpec,
  type VmmUsage,
} from "../contract.ts";
import { type FakeAnswer, type FakeCommand, FakeGuest, type FakeGuestState } from "./guest.ts";

/** Bytes at the beginning of a memory file that hold the guest's state. */
const STATE_BYTES = 4096;
const MB = 1024 * 1024;
/** What a fake VMM needs for itself. */
const ANONYMOUS_MB = 64;
/** Bytes of a memory file, however much memory the machine has: every suspend reads all of it. */
const MEMORY_BYTES = 256 * 1024;

/** What a device state begins with. Like QEMU's, it does not say of which machine it is. */
const DEVICES = "devices of ";

class FakeProcess {
  readonly ref: VmmRef;
  readonly spec: VmmSpec;
  readonly guest: FakeGuest;
  readonly identity: HypervisorIdentity;
  readonly gone = Promise.withResolvers<void>();
  running = false;
  /** Why its guest could not continue. */
  failure: string | undefined;
  /** The device state that the guest was restored from, until it runs for the first time. */
  restoredFrom: string | undefined;
  /** Likewise, of the snapshot that was taken of it while it was paused. */
  capturedTo: string | undefined;
  /** It answers nothing any more. */
  hangs = false;
  /** It was killed, and the kernel holds it. */
  held = false;
  /** Its memory file is others', too. */
  borrowed: boolean;
  /** How long its VMM takes to answer. */
  answersAfterMs = 0;
  comesLast = false;
  /** CPU time that it has used, in milliseconds. */
  cpuMs = 1000;
  /** How long it waited for a CPU, in milliseconds. */
  waitedMs = 0;

  constructor(ref: VmmRef, identity: HypervisorIdentity, spec: VmmSpec, end: () => void) {
    this.ref = ref;
    this.identity = identity;
    this.spec = spec;
    this.borrowed = spec.borrowed === true;
    this.guest = new FakeGuest(spec.machineId, end);
  }
}

/** The processes of a fake host, and the faults that tests inject. */
export class FakeHost {
  readonly processes = new Map<number, FakeProcess>();
  /** The largest number of VMMs that one machine had at the same time. More than one is a fault. */
  mostPerMachine = 0;
  /** Device state files of the snapshots that were run, restored or not. A file that appears twice is a fault. */
  readonly restored: string[] = [];
  /** Thrown by the next capture, boot or restore, once. */
  faults: { prepare?: Error; capture?: Error; boot?: Error; restore?: Error; keep?: Error } = {};
  /** Whether VMMs can keep disks while guests write to them. */
  keepsDisks = true;
  /** Machines whose disks are kept at the moment. */
  readonly keeping = new Set<string>();
  /** Awaited in the middle of a capture, boot or restore, to hold it up. */
  hold: { capture?: Promise<void>; boot?: Promise<void>; restore?: Promise<void> } = {};
  /** Whether guests can begin with a memory file that others begin with, too. */
  borrows = true;
  /** Whether a load writes to the memory file, as KVM does. */
  writesOnLoad = false;
  /** Ids of machines whose VMMs do not end: the kernel holds them, until {@link letGo}. */
  readonly holding = new Set<string>();
  /** Ids of machines whose app ends as soon as it is started. */
  readonly crashing = new Set<string>();
  /** Ids of machines whose guests do not take an identity. */
  readonly refusesToBecome = new Set<string>();
  /** Where apps listen that do not listen where they should, by machine id. */
  readonly listening = new Map<string, Listener[]>();
  /** Where the apps of guests that are started from now on listen, whatever ports they should listen on. */
  stubborn: Listener[] | undefined;
  /** What guests that are started from now on do with commands. By default, all are `cat`. */
  answer: (machineId: string, command: FakeCommand) => FakeAnswer | undefined = () => undefined;
  #nextPid = 1;

  /** The guest of a machine. Undefined when the machine has no VMM. */
  guest(machineId: string): FakeGuest | undefined {
    return this.of(machineId)[0]?.guest;
  }

  /** The VMMs of a machine. */
  of(machineId: string): FakeProcess[] {
    return [...this.processes.values()].filter((process) => process.ref.machineId === machineId);
  }

  /** Starts a process whose guest is not running yet. */
  launch(spec: VmmSpec, identity: HypervisorIdentity): FakeProcess {
    const pid = this.#nextPid++;
    const ref = { machineId: spec.machineId, pid, startTicks: String(pid) };
    const process = new FakeProcess(ref, identity, spec, () => {
      // A power off flushes disks, which is what the kernel does not get done.
      if (!this.holding.has(ref.machineId)) this.end(ref);
    });
    process.guest.crashes = this.crashing.has(spec.machineId);
    process.guest.refusesToBecome = this.refusesToBecome.has(spec.machineId);
    process.guest.listening = this.listening.get(spec.machineId);
    process.guest.stubborn = this.stubborn;
    process.guest.answer = (command) => this.answer(spec.machineId, command);
    this.processes.set(pid, process);
    this.mostPerMachine = Math.max(this.mostPerMachine, this.of(spec.machineId).length);
    return process;
  }

  /** Ends a process, unless its pid belongs to another one. */
  end(ref: VmmRef): void {
    const process = this.processes.get(ref.pid);
    if (process?.ref.startTicks !== ref.startTicks) return;
    this.processes.delete(ref.pid);
    process?.guest.disconnect();
    process?.gone.resolve();
  }

  /** Kills a process, which ends unless the kernel holds it. Throws {@link VmmHeld} then. */
  kill(ref: VmmRef): void {
    const process = this.processes.get(ref.pid);
    if (process === undefined || !this.holding.has(ref.machineId)) return this.end(ref);
    process.held = true;
    process.running = false;
    process.hangs = true;
    process.guest.disconnect();
    throw new VmmHeld(ref);
  }

  /** The kernel lets go of a machine's VMMs: those that were killed end. */
  letGo(machineId: string): void {
    this.holding.delete(machineId);
    for (const { ref, held } of this.of(machineId)) if (held) this.end(ref);
  }

  /** Throws {@link VmmHeld} while a VMM of the machine that was killed has not ended. */
  requireEnded(machineId: string): void {
    const process = this.of(machineId).find(({ held }) => held);
    if (process !== undefined) throw new VmmHeld(process.ref);
  }

  /** The guest of a machine cannot continue, which ends its process, or will when the next platform adopts it. */
  fail(machineId: string, why: string, noticed: "now" | "when adopted" = "now"): void {
    for (const process of this.of(machineId)) {
      process.failure = why;
      process.running = false;
      if (noticed === "now") this.end(process.ref);
    }
  }

  /** Throws the injected fault, if there is one, and clears it. */
  takeFault(kind: keyof FakeHost["faults"]): void {
    const fault = this.faults[kind];
    delete this.faults[kind];
    if (fault !== undefined) throw fault;
  }
}

class FakeVmm implements Vmm {
  readonly ref: VmmRef;
  readonly identity: HypervisorIdentity;
  onStalled: (reason: string | undefined) => void = () => {};
  readonly exited: Promise<void>;
  readonly #host: FakeHost;
  readonly #process: FakeProcess;

  constructor(host: FakeHost, process: FakeProcess) {
    this.ref = process.ref;
    this.identity = process.identity;
    this.exited = process.gone.promise;
    this.#host = host;
    this.#process = process;
  }

  get failure(): string | undefined {
    return this.#process.failure;
  }

  /** As if the guest had touched all of its memory. */
  async usage(): Promise<VmmUsage | undefined> {
    const process = this.#host.processes.get(this.ref.pid);
    return (
      process && { cpuMs: process.cpuMs, residentBytes: process.spec.memoryMb * MB, anonymousBytes: ANONYMOUS_MB * MB }
    );
  }

  async threadTimes(): Promise<ReadonlyMap<number, ThreadTimes> | undefined> {
    const process = this.#host.processes.get(this.ref.pid);
    return process && new Map([[process.ref.pid, { ranMs: process.cpuMs, waitedMs: process.waitedMs }]]);
  }

  /** As if a guest that began with others had written a little. */
  async ownMemory(): Promise<number> {
    return this.#alive().spec.borrowed === true ? MB : 0;
  }

  async comeLast(last: boolean): Promise<boolean> {
    const process = this.#host.processes.get(this.ref.pid);
    if (process !== undefined) process.comesLast = last;
    return true;
  }

  async state(): Promise<"running" | "paused"> {
    const process = this.#alive();
    if (process.hangs) await process.gone.promise;
    if (process.answersAfterMs > 0) await delay(process.answersAfterMs);
    return process.running ? "running" : "paused";
  }

  async run(): Promise<void> {
    const process = this.#alive();
    process.running = true;
    const from = process.restoredFrom ?? process.capturedTo;
    if (from !== undefined) this.#host.restored.push(from);
    process.restoredFrom = undefined;
    process.capturedTo = undefined;
    process.guest.resume();
  }

  async pause(): Promise<void> {
    const process = this.#alive();
    process.running = false;
    process.guest.pause();
  }

  async prepareCapture(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#alive();
    this.#host.takeFault("prepare");
  }

  /** Fake guests write to no disk: nothing has to be put back. */
  async keepDisks(): Promise<KeptDisks | undefined> {
    const { running, spec } = this.#alive();
    const { keeping } = this.#host;
    if (running) throw new Error("disks are kept of a paused guest");
    if (!this.#host.keepsDisks) return undefined;
    keeping.add(spec.machineId);
    return {
      lost: new AbortController().signal,
      complete: async (_, signal) => {
        signal.throwIfAborted();
        this.#alive();
        this.#host.takeFault("keep");
        if (!keeping.has(spec.machineId)) throw new Error("the disks are not kept any more");
      },
      release: async () => void keeping.delete(spec.machineId),
    };
  }

  async capture(deviceState: string, signal: AbortSignal): Promise<void> {
    const { guest, spec, running } = this.#alive();
    if (running) throw new Error("a capture needs a paused guest");
    if (this.#host.keeping.has(spec.machineId)) throw new Error("a capture while disks are kept");
    await this.#host.hold.capture;
    signal.throwIfAborted();
    this.#host.takeFault("capture");
    if (this.#process.borrowed) await this.#keepOwn(spec);
    const text = JSON.stringify(guest.state);
    await using memory = await open(spec.memory, "r+");
    await memory.write(Buffer.from(text.padEnd(STATE_BYTES)), 0, STATE_BYTES, 0);
    await memory.sync();
    await writeFile(deviceState, `${DEVICES}${spec.machineId}`, { flag: "wx", flush: true });
    // Where it will be once it is published.
    this.#process.capturedTo = deviceState.replace("/tmp-", "/");
    signal.throwIfAborted();
  }

  /** Its memory file is not others' any more, in one step. */
  async #keepOwn({ memory }: VmmSpec): Promise<void> {
    const { own, lent } = besideMemory(memory);
    await copyFile(memory, own);
    await rm(lent, { force: true });
    await link(memory, lent);
    await rename(own, memory);
    this.#process.borrowed = false;
  }

  async openChannel(signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const [ours, theirs] = duplexPair();
    ours.on("error", () => {});
    this.#alive().guest.connect(theirs);
    theirs.on("close", () => ours.destroy());
    ours.on("close", () => theirs.destroy());
    return ours;
  }

  async kill(): Promise<void> {
    this.#host.kill(this.ref);
    for (const path of Object.values(besideMemory(this.#process.spec.memory))) await rm(path, { force: true });
  }

  release(): void {}

  #alive(): FakeProcess {
    if (!this.#host.processes.has(this.ref.pid)) throw new Error("the VMM is gone");
    return this.#process;
  }
}

/** The hypervisor contract on a fake host. */
export class FakeHypervisor implements Hypervisor {
  readonly #host: FakeHost;
  readonly #identity: HypervisorIdentity;

  constructor(host: FakeHost, identity: Partial<HypervisorIdentity> = {}) {
    this.#host = host;
    this.#identity = {
      hypervisor: "fake",
      version: "1",
      accelerator: "fake",
      cpu_model: "none",
      machine_type: "none",
      ...identity,
    };
  }

  identity(): HypervisorIdentity {
    return this.#identity;
  }

  async borrows(): Promise<boolean> {
    return this.#host.borrows;
  }

  async boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm> {
    this.#host.requireEnded(spec.machineId);
    await rm(spec.memory, { force: true });
    await writeFile(spec.memory, "");
    await truncate(spec.memory, MEMORY_BYTES);
    const process = this.#host.launch({ ...spec, borrowed: false }, this.#identity);
    try {
      await this.#host.hold.boot;
      signal.throwIfAborted();
      if (!this.#host.processes.has(process.ref.pid)) throw new VmmKilled("the fake was killed");
      this.#host.takeFault("boot");
    } catch (error) {
      this.#host.end(process.ref);
      throw error;
    }
    process.running = true;
    return new FakeVmm(this.#host, process);
  }

  async restore(
    spec: VmmSpec,
    { file, takenBy }: DeviceState,
    signal: AbortSignal,
    checked: Promise<void> = Promise.resolve(),
  ): Promise<Vmm> {
    this.#host.requireEnded(spec.machineId);
    // It runs on what the snapshot was taken on, as QEMU does.
    const { cpu_model, machine_type } = takenBy;
    const process = this.#host.launch(spec, { ...this.#identity, cpu_model, machine_type });
    try {
      this.#host.takeFault("restore");
      if (!readFileSync(file, "utf8").startsWith(DEVICES)) throw new Error("the device state is not valid");
      await checked;
      const memory = await readFile(spec.memory);
      if (spec.borrowed === true && !this.#host.borrows) throw new Error("the memory cannot be opened for writing");
      if (this.#host.writesOnLoad && spec.borrowed !== true) await writeOnLoad(spec.memory);
      await this.#host.hold.restore;
      signal.throwIfAborted();
      if (!this.#host.processes.has(process.ref.pid)) throw new VmmKilled("the fake was killed");
      process.guest.pause();
      process.restoredFrom = file;
      process.guest.state = JSON.parse(memory.toString("utf8", 0, STATE_BYTES)) as FakeGuestState;
    } catch (error) {
      this.#host.end(process.ref);
      throw error;
    }
    return new FakeVmm(this.#host, process);
  }

  async find(): Promise<VmmRef[]> {
    return [...this.#host.processes.values()].map((process) => process.ref);
  }

  async adopt(ref: VmmRef): Promise<Vmm> {
    const process = this.#host.processes.get(ref.pid);
    if (process === undefined || process.ref.startTicks !== ref.startTicks) throw new Error("the VMM is gone");
    if (process.held) throw new Error("the VMM does not answer");
    if (process.failure !== undefined) {
      this.#host.end(ref);
      throw new VmmFailed(process.failure);
    }
    return new FakeVmm(this.#host, process);
  }

  async end(ref: VmmRef): Promise<void> {
    this.#host.kill(ref);
  }

  async requireEnded(machineId: string): Promise<void> {
    this.#host.requireEnded(machineId);
  }
}

/** The time, in a page behind the guest's state. */
async function writeOnLoad(path: string): Promise<void> {
  await using memory = await open(path, "r+");
  await memory.write(Buffer.from(String(Date.now())), 0, undefined, STATE_BYTES);
}
