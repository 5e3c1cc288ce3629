/**
 * What the platform needs from a hypervisor. There are two implementations, `qemu/` and, for fast tests, `fake/`; both
 * pass the suite in `test/hypervisor/conformance.ts`.
 */
import type { Duplex } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import type { NetworkAttachment } from "@hibernaut/domain/guest-network";

/** Everything about the hypervisor that a snapshot depends on. */
export interface HypervisorIdentity {
  hypervisor: string;
  version: string;
  /** `kvm`, or `tcg` for software emulation; `fake` in tests. */
  accelerator: "kvm" | "tcg" | "fake";
  cpu_model: string;
  /** Under KVM: what guests see of the host's CPU, sorted. Version 0.1 did not record it. */
  cpu_features?: string[];
  machine_type: string;
}

/** The fields of an identity that are compared as they are, with their stable words and names. */
const COMPARED = {
  hypervisor: ["hypervisor_changed", "hypervisor"],
  version: ["hypervisor_version_changed", "hypervisor version"],
  accelerator: ["accelerator_changed", "accelerator"],
  cpu_model: ["cpu_model_changed", "CPU model"],
  machine_type: ["machine_type_changed", "machine type"],
} as const;

/** Names the first of the `fields` that differ: a stable word, a colon and the difference. Undefined when none does. */
export function differenceIn(
  was: HypervisorIdentity,
  now: HypervisorIdentity,
  fields: readonly (keyof typeof COMPARED)[],
): string | undefined {
  const field = fields.find((name) => was[name] !== now[name]);
  if (field === undefined) return undefined;
  const [word, name] = COMPARED[field];
  return `${word}: ${name} was ${was[field]}, is ${now[field]}`;
}

/** The state of a paused guest's devices, and what is needed to load it. */
export interface DeviceState {
  /** Path of the file. */
  file: string;
  /** The hypervisor that wrote it. */
  takenBy: HypervisorIdentity;
}

/** Two versions of a hypervisor between which a resume has failed. */
export interface FailedCarryOver {
  /** The version that took the snapshot. */
  from: string;
  /** The version that could not resume it. */
  to: string;
}

/** Is told when a resume failed in another version than the one that took the snapshot. */
export interface CarryOvers {
  /** From now on, snapshots of other versions are refused. Rejects when that cannot be stored; it counts anyway. */
  failed(pair: FailedCarryOver): Promise<void>;
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
  /**
   * For `restore`: other machines begin with this memory file, too, so nobody writes to it. What the guest writes is in the VMM
   * alone, until `capture` puts a file of its own at the same path. Only where {@link Hypervisor.borrows} says so.
   */
  borrowed?: boolean;
  /** Directory for sockets, with a path short enough for a socket address. */
  runDir: string;
  /** The file to which the guest's serial console is appended. */
  consoleLog: string;
  network: NetworkAttachment;
}

/**
 * Names of files next to a machine's memory, which go with it. `own` is being put together to take its place. `lent` is what a
 * VMM has mapped and did not write to, once the machine has a memory of its own: as long as a VMM may read a file, the file has
 * a name for it, so that the number of its names tells who else has it. Both go when the VMM has ended: a file without another
 * name then gives its space back.
 */
export function besideMemory(memory: string): { own: string; lent: string } {
  return { own: `${memory}.own`, lent: `${memory}.lent` };
}

/** Identifies a VMM process. A later process with the same pid has another start time. */
export interface VmmRef {
  machineId: string;
  pid: number;
  /** Start time of the process, in clock ticks since the host's boot. */
  startTicks: string;
}

/** What a VMM takes of the host. */
export interface VmmUsage {
  /** CPU time since its start, in milliseconds: the guest's, and its own. */
  cpuMs: number;
  /** Memory that is in the host's RAM, in bytes. A guest's memory that it never touched, or that was paged out, is not. */
  residentBytes: number;
  /** The part of it that is in no file: it goes only when the process ends. */
  anonymousBytes: number;
}

/** What one of a VMM's threads has had of the host's CPUs since it began. */
export interface ThreadTimes {
  /** How long it ran, in milliseconds. */
  ranMs: number;
  /** How long it could have run, and others did, in milliseconds. */
  waitedMs: number;
}

/** A file of a disk, and a copy of it. Absolute paths. */
export interface DiskCopy {
  from: string;
  to: string;
}

/**
 * What disks had at the moment at which they were to be kept is no longer known, such as on a full disk, or because their guest
 * writes faster than that can be stored. The guest never waits for it, and its writes never fail.
 */
export class KeptLost extends Error {
  override name = "KeptLost";
}

/** Disks that are kept as they were at one moment, while their guest writes to them. */
export interface KeptDisks {
  /** Aborts with a {@link KeptLost} as soon as it is noticed that a copy is of no use any more. */
  readonly lost: AbortSignal;
  /**
   * Makes copies of the disks, which may have been made at any time since, what the disks were at that moment. Rejects with a
   * {@link KeptLost}, and with the signal's reason.
   */
  complete(copies: readonly DiskCopy[], signal: AbortSignal): Promise<void>;
  /** Keeps them no longer. Never rejects. Safe to repeat. */
  release(): Promise<void>;
}

/** A running hypervisor process with its guest. */
export interface Vmm {
  readonly ref: VmmRef;
  /** The hypervisor that runs this guest. An upgrade of the host's packages does not change it. */
  readonly identity: HypervisorIdentity;
  /** When the process took commands, on the clock of `performance.now()`. Undefined for one that was adopted. */
  readonly listensAt?: number | undefined;
  /**
   * Resolves when the process has ended, for whatever reason. Never rejects. The process of a guest that cannot continue
   * is ended at once.
   */
  readonly exited: Promise<void>;
  /**
   * Once the process has ended: why, if the guest crashed or the hypervisor could not continue it. In the hypervisor's
   * own words, as far as there are any.
   */
  readonly failure: string | undefined;
  /**
   * Called with the reason when the guest is halted because the host's disk cannot take its writes, and with undefined
   * once it continues, which it does without help as soon as the disk has space.
   */
  onStalled: (reason: string | undefined) => void;
  /** Returns what the process takes of the host at the moment. Undefined once it has ended. */
  usage(): Promise<VmmUsage | undefined>;
  /** Returns what its threads have had of the host's CPUs, by thread. Undefined once it has ended, and where the kernel does not tell. */
  threadTimes(): Promise<ReadonlyMap<number, ThreadTimes> | undefined>;
  /**
   * Returns how much of the guest's memory is in the VMM alone, in bytes: what it has written to of a memory that is others',
   * too. 0 for a guest whose memory is all in its file. Rejects once the VMM has ended.
   */
  ownMemory(): Promise<number>;
  /**
   * Lets other guests come before this one when they want the same CPUs, which leaves it what they do not want, or takes that
   * back. Returns false where the host does not let the platform.
   */
  comeLast(last: boolean): Promise<boolean>;
  /** Whether the guest's CPUs are running. Rejects with {@link VmmSilent} when it does not answer in time. */
  state(): Promise<"running" | "paused">;
  /** Starts the guest's CPUs, or lets them continue. */
  run(): Promise<void>;
  /** Stops the guest's CPUs. */
  pause(): Promise<void>;
  /**
   * Does beforehand, while the guest may run, what takes longest of a capture: copies a memory that is others', too. Without it,
   * `capture` does that itself. Safe to repeat; does nothing for a guest that has a memory of its own. Rejects when aborted, and when
   * there is no room.
   */
  prepareCapture(signal: AbortSignal, options?: { durable: boolean }): Promise<void>;
  /**
   * Writes the device state of a paused guest to a new file, and makes it and the memory file, which is then the guest's own,
   * durable, unless `durable` is false: a copy is flushed when it is complete. The guest stays paused, and `run` lets it
   * continue. Rejects when aborted, or with the reason when the disk cannot be written.
   */
  capture(deviceState: string, signal: AbortSignal, options?: { durable: boolean }): Promise<void>;
  /**
   * Keeps disks of a paused guest as they are now, also while it runs again. One that ends, or a platform that does, loses
   * what was kept and nothing else. To be released before the next capture. Undefined where the hypervisor cannot do that.
   */
  keepDisks(files: readonly string[]): Promise<KeptDisks | undefined>;
  /** Opens a connection to the agent's port. Each call replaces the connection of the one before. */
  openChannel(signal: AbortSignal): Promise<Duplex>;
  /** Kills the process and waits until it has ended. Safe to repeat. Rejects with {@link VmmHeld} when it does not end. */
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

/** A VMM did not answer in time. It may be alive: this does not prove the contrary. */
export class VmmSilent extends Error {
  override name = "VmmSilent";
}

/** The guest of a VMM that was to be adopted could not continue, so the VMM was ended. The message says why. */
export class VmmFailed extends Error {
  override name = "VmmFailed";
}

/**
 * A VMM was killed and has not ended, because the kernel holds it. Its guest does not run any more, but what it was writing
 * may still reach the machine's disks, so nothing of the machine may be started or copied.
 */
export class VmmHeld extends HibernautError {
  override name = "VmmHeld";
  readonly ref: VmmRef;

  constructor(ref: VmmRef) {
    const { machineId, pid } = ref;
    super(
      "unavailable",
      `The virtual machine of machine ${machineId} was killed and has not ended: the kernel still holds its process ${pid}, which may write to the machine's disks. Until it has ended, the machine is neither started nor moved. Look at the host's disks and the output of dmesg; if it never ends, restart the host. Then try again.`,
      { machine_id: machineId, pid },
    );
    this.ref = ref;
  }
}

/** Starts guests, and finds those that an earlier platform started. */
export interface Hypervisor {
  /** Returns what a snapshot taken now would record. */
  identity(): HypervisorIdentity;
  /** Whether guests can begin with a memory file that others begin with, too: see {@link VmmSpec.borrowed}. */
  borrows(): Promise<boolean>;
  /**
   * Boots a guest from scratch, with its CPUs running. When this rejects, no process is left, except one that
   * {@link requireEnded} tells of; it rejects with {@link VmmKilled} when someone else ended the process, and with
   * {@link VmmHeld} while an earlier one of the machine has not ended.
   */
  boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm>;
  /**
   * Loads the device state together with the memory file. The guest is paused until `run`. Rejects like `boot`.
   *
   * The memory file does not change before `checked` resolves; with its rejection, nothing is loaded. After that, the load
   * itself may write to it: KVM tells a guest that is loaded what time it is, in a page of its memory.
   */
  restore(spec: VmmSpec, devices: DeviceState, signal: AbortSignal, checked?: Promise<void>): Promise<Vmm>;
  /** Lists the VMMs of this data directory that are alive now, no matter which platform started them. */
  find(): Promise<VmmRef[]>;
  /**
   * Takes over a VMM that `find` returned. Rejects when it is no longer the same process or does not answer, and with
   * {@link VmmFailed} when its guest cannot continue.
   */
  adopt(ref: VmmRef, signal: AbortSignal): Promise<Vmm>;
  /**
   * Kills a VMM that cannot be adopted, unless its pid now belongs to another process. Rejects with {@link VmmHeld} when it
   * does not end.
   */
  end(ref: VmmRef): Promise<void>;
  /**
   * Rejects with {@link VmmHeld} while a VMM of the machine that was killed here has not ended. Costs nothing without one.
   */
  requireEnded(machineId: string): Promise<void>;
}
