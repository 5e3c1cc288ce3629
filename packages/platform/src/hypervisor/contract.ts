/**
 * What the platform needs from a hypervisor. There are two implementations, `qemu/` and, for fast tests, `fake/`; both
 * pass the suite in `test/hypervisor/conformance.ts`.
 */
import type { Duplex } from "node:stream";
import type { GuestBundle } from "../domain/guest-bundle.ts";
import type { NetworkAttachment } from "../network/contract.ts";

/** Everything about the hypervisor that a snapshot depends on. Hypervisors that differ in any field share no snapshots. */
export interface HypervisorIdentity {
  hypervisor: string;
  version: string;
  /** `kvm`, or `tcg` for software emulation; `fake` in tests. */
  accelerator: "kvm" | "tcg" | "fake";
  cpu_model: string;
  machine_type: string;
}

/** One virtual machine as the hypervisor sees it. Paths are absolute, and directories exist. */
export interface VmmSpec {
  machineId: string;
  cpus: number;
  memoryMb: number;
  bundle: GuestBundle;
  /** Read-only root file system (squashfs). */
  image: string;
  /** Writable layer (ext4 in a sparse file). */
  layer: string;
  /** Further disks, in the order in which the guest sees them. Serial numbers have up to 20 characters. */
  volumes: { serial: string; file: string }[];
  /** The file that backs the guest's memory. `boot` makes it, and `restore` reuses it. */
  memory: string;
  /** Directory for sockets, with a path short enough for a socket address. */
  runDir: string;
  /** The file to which the guest's serial console is appended. */
  consoleLog: string;
  network: NetworkAttachment;
}

/** Identifies a VMM process. A later process with the same pid has another start time. */
export interface VmmRef {
  machineId: string;
  pid: number;
  /** Start time of the process, in clock ticks since the host's boot. */
  startTicks: string;
}

/** A running hypervisor process with its guest. */
export interface Vmm {
  readonly ref: VmmRef;
  /** The hypervisor that runs this guest. An upgrade of the host's packages does not change it. */
  readonly identity: HypervisorIdentity;
  /** Resolves when the process has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<void>;
  /**
   * Called with the reason when the guest is halted because the host's disk cannot take its writes, and with undefined
   * once it continues, which it does without help as soon as the disk has space.
   */
  onStalled: (reason: string | undefined) => void;
  /** Whether the guest's CPUs are running. */
  state(): Promise<"running" | "paused">;
  /** Starts the guest's CPUs, or lets them continue. */
  run(): Promise<void>;
  /** Stops the guest's CPUs. */
  pause(): Promise<void>;
  /**
   * Writes the device state of a paused guest to a new file, and makes it and the memory file durable. The guest stays
   * paused, and `run` lets it continue. Rejects when aborted, or with the reason when the disk cannot be written.
   */
  capture(deviceState: string, signal: AbortSignal): Promise<void>;
  /** Opens a connection to the agent's port. Each call replaces the connection of the one before. */
  openChannel(signal: AbortSignal): Promise<Duplex>;
  /** Kills the process and waits until it has ended. Safe to repeat. */
  kill(): Promise<void>;
  /** Lets go of the process without ending it: it keeps running and can be adopted. */
  release(): void;
}

/**
 * Someone else killed the VMM while it was starting: a person, or the kernel of a host that is out of memory. This says
 * nothing about the machine, and another attempt may work.
 */
export class VmmKilled extends Error {
  override name = "VmmKilled";
}

/** Starts guests, and finds those that an earlier platform started. */
export interface Hypervisor {
  /** Returns what a snapshot taken now would record. */
  identity(): HypervisorIdentity;
  /**
   * Boots a guest from scratch, with its CPUs running. When this rejects, no process is left; it rejects with
   * {@link VmmKilled} when someone else ended the process.
   */
  boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm>;
  /**
   * Loads `deviceState` together with the memory file. The guest is paused, and its memory file does not change until
   * `run`. Rejects like `boot`.
   */
  restore(spec: VmmSpec, deviceState: string, signal: AbortSignal): Promise<Vmm>;
  /** Lists the VMMs of this data directory that are alive now, no matter which platform started them. */
  find(): Promise<VmmRef[]>;
  /** Takes over a VMM that `find` returned. Rejects when it is no longer the same process or does not answer. */
  adopt(ref: VmmRef, signal: AbortSignal): Promise<Vmm>;
  /** Kills a VMM that cannot be adopted, unless its pid now belongs to another process. */
  end(ref: VmmRef): Promise<void>;
}
