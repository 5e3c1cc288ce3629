/**
 * What the platform asks of a thing that runs guests. Implementations: `qemu/` and, for fast
 * tests, `fake/`; `test/hypervisor/conformance.ts` is the suite that each of them passes.
 */
import type { Duplex } from "node:stream";
import type { GuestBundle } from "../domain/guest-bundle.ts";
import type { NetworkAttachment } from "../network/contract.ts";

/** Everything about the hypervisor that a snapshot depends on. Two that differ in any field do not share snapshots. */
export interface HypervisorIdentity {
  hypervisor: string;
  version: string;
  /** `kvm`, or `tcg` for software emulation; `fake` in tests. */
  accelerator: "kvm" | "tcg" | "fake";
  cpu_model: string;
  machine_type: string;
}

/** One virtual machine as the hypervisor sees it. Paths are absolute; folders exist. */
export interface VmmSpec {
  machineId: string;
  cpus: number;
  memoryMb: number;
  bundle: GuestBundle;
  /** Read-only root file system (squashfs). */
  image: string;
  /** Writable layer (ext4 in a sparse file). */
  layer: string;
  /** Further disks, in the order in which the guest gets them. The serial numbers have at most 20 characters. */
  volumes: { serial: string; file: string }[];
  /** The file that is the guest's memory; made by `boot`, reused by `restore`. */
  memory: string;
  /** Folder for sockets, short enough for a socket address. */
  runDir: string;
  /** Where the guest's serial console is appended. */
  consoleLog: string;
  network: NetworkAttachment;
}

/** Names a VMM process for good: a recycled pid has another start time. */
export interface VmmRef {
  machineId: string;
  pid: number;
  /** Start time of the process, in the kernel's clock ticks since boot. */
  startTicks: string;
}

/** A running hypervisor process with its guest. */
export interface Vmm {
  readonly ref: VmmRef;
  /** What runs this guest, which an upgrade of the host's packages does not change. */
  readonly identity: HypervisorIdentity;
  /** Settles when the process is gone, for whatever reason. Never rejects. */
  readonly exited: Promise<void>;
  /**
   * Called with the reason when the guest stands still because the host's disk does not take what it
   * writes, and with undefined once it goes on, which happens by itself when the disk takes it.
   */
  onStalled: (reason: string | undefined) => void;
  /** Whether the guest's CPUs run. */
  state(): Promise<"running" | "paused">;
  run(): Promise<void>;
  pause(): Promise<void>;
  /**
   * Writes the device state of a paused guest to a new file and makes it and the memory
   * file durable. The guest stays paused; `run` lets the same guest go on.
   * Rejects when aborted, or with the reason when the disk does not take it.
   */
  capture(deviceState: string, signal: AbortSignal): Promise<void>;
  /** A connection to the agent's port; a new one each call, the last one counts. */
  openChannel(signal: AbortSignal): Promise<Duplex>;
  /** Ends the process at once and waits until it is gone. Safe to repeat. */
  kill(): Promise<void>;
  /** Lets go of the process without ending it: it goes on and can be adopted. */
  release(): void;
}

/**
 * The VMM was killed from outside while it started: by a person, or by the kernel of a host without memory. That says
 * nothing about the machine, and trying again may work.
 */
export class VmmKilled extends Error {
  override name = "VmmKilled";
}

export interface Hypervisor {
  /** What a snapshot taken now would record. */
  identity(): HypervisorIdentity;
  /**
   * Starts a guest from scratch, its CPUs running. A process that was started is gone when this rejects; with
   * {@link VmmKilled} when somebody else ended it.
   */
  boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm>;
  /** Loads `deviceState` over the memory file; the guest is paused, and its memory file unchanged until `run`. Rejects as `boot`. */
  restore(spec: VmmSpec, deviceState: string, signal: AbortSignal): Promise<Vmm>;
  /** The VMMs of this platform that are alive now, whoever started them. */
  find(): Promise<VmmRef[]>;
  /** Takes over a VMM that `find` returned. Rejects when it is no longer the same process or does not answer. */
  adopt(ref: VmmRef, signal: AbortSignal): Promise<Vmm>;
  /** Ends a VMM that cannot be adopted, unless its pid now belongs to another process. */
  end(ref: VmmRef): Promise<void>;
}
