/** What machines are built on: contracts only, wired by the composition root. */
import type { Duplex } from "node:stream";
import type { CheckResult } from "@hibernaut/domain/check";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { GuestCommand } from "@hibernaut/guest";
import type { CarryOvers, Hypervisor } from "@hibernaut/hypervisor";
import type { ImageStore } from "@hibernaut/images";
import type { Semaphore } from "@hibernaut/lib/semaphore";
import type { Network } from "@hibernaut/network";
import type { Secrets } from "@hibernaut/secrets";
import type { Settings } from "@hibernaut/settings";
import type { SnapshotStore } from "@hibernaut/snapshots";
import type { Store } from "@hibernaut/store";
import type { MachineVolumes } from "@hibernaut/volumes";
import type { HostMemory } from "./admission/host-memory.ts";
import type { HostCpu } from "./cpu/host-cpu.ts";
import type { DiskQuota } from "./disk-quota.ts";
import type { MachineFiles } from "./files.ts";
import type { Ownership } from "./ownership.ts";
import type { Quotas } from "./quotas.ts";
import type { TemplateClaims } from "./template-claims.ts";
import type { MemoryPressure } from "./warm/pressure.ts";
import type { Watch } from "./watch.ts";

/** The guest bundles at hand: the one that machines are made with now, and older ones that machines still boot. */
interface Bundles {
  readonly current: GuestBundle;
  get(version: string): GuestBundle | undefined;
}

/** The part of a structured logger that machines use. */
export interface Logger {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

type MachineSettings = Pick<
  Settings,
  | "region"
  | "suspendMaxMemoryMb"
  | "bootTimeoutMs"
  | "readyTimeoutMs"
  | "resumeTimeoutMs"
  | "suspendTimeoutMs"
  | "hookTimeoutMs"
  | "flushTimeoutMs"
  | "wakeTimeoutMs"
  | "slowFactor"
  | "keepAwakeMaxS"
  | "logMaxMb"
  | "logRateMb"
  | "logLines"
  | "proxy"
  | "proxySuffixes"
  | "reservedHostnames"
  | "apiListen"
  | "drainSuspends"
  | "resumeOnBoot"
  | "scrubIntervalH"
  | "scrubRateMb"
  | "keepWarmS"
  | "keepWarmMemoryMb"
  | "prewarmTimeoutMs"
  | "prewarmSettleMs"
  | "memoryReserveMb"
  | "memoryOvercommit"
>;

export interface MachineDependencies {
  hypervisor: Hypervisor;
  carryOvers: CarryOvers;
  store: Store;
  images: ImageStore;
  network: Network;
  snapshots: SnapshotStore;
  bundles: Bundles;
  secrets: Secrets;
  volumes: MachineVolumes;
  files: MachineFiles;
  /** Boots at once: all machines of a host that was restarted would otherwise boot together, each too slow to succeed. */
  bootSlots: Semaphore;
  /** Identifies the boot of the host: another one means that the host was restarted. */
  bootId: string;
  settings: MachineSettings;
  log: Logger;
  /** The wall clock, which tests move. By default, the host's. */
  clock?(): Date;
  /** Whether memory is short. By default, what the kernel says. */
  memoryPressure?: Pick<MemoryPressure, "short">;
  /** How much memory is left. By default, what the kernel says. */
  hostMemory?: Pick<HostMemory, "available">;
  /** How busy the CPUs are. By default, what the kernel says. */
  hostCpu?: Pick<HostCpu, "busy" | "count">;
  /** How much disk apps may take. By default, as much as there is. */
  diskQuota?: Pick<DiskQuota, "require" | "requireForStart">;
  /** Is told what happens to machines, for metrics and traces. By default, nobody is. */
  watch?: Watch;
  /** What the checks of a machine say. */
  checkResults?(machineId: string): CheckResult[];
  /** Calls `listener` with a machine's id after every result of its checks. Returns a function that ends that. */
  subscribeToChecks?(listener: (machineId: string) => void): () => void;
  /**
   * Tries the checks of a machine that runs until each has passed once. Resolves with what is wrong if they have not when the
   * signal aborts. By default, there are none.
   */
  passChecks?(machine: Pick<MachineRecord, "config" | "address">, signal: AbortSignal): Promise<string | undefined>;
  /** Settles when the requests that the proxies have open on a machine have ended, or had their time. */
  finishRequests?(machineId: string): Promise<void>;
  /** Lets new requests to a machine that runs wait. Returns how to end that. By default, nobody sends any. */
  holdBack?(machineId: string): () => void;
  /**
   * Takes a machine from the proxies, unless a request needs it, and calls `sleep`, which says whether the machine goes to
   * sleep. Resolves with whether no request needed it. By default, none does.
   */
  letGo?(machineId: string, sleep: () => boolean): Promise<boolean>;
  /** This host's name in its cluster. Absent on a host alone. */
  hostName?: string | undefined;
  /** What apps may have. By default, everything. */
  quotas?: Quotas;
  /** The ports on which the platform itself listens. By default, none. */
  ownPorts?: ReadonlySet<number>;
  /** Which machines are this host's, in a cluster. Absent on a host alone, whose machines are all its own. */
  ownership?: Ownership;
  /** Which templates the hosts of a cluster have. Absent on a host alone. */
  templateClaims?: TemplateClaims;
  /** Takes a connection that a program in a machine made to its local API; they are refused when absent. */
  onLocalConnection?(machineId: string, connection: Duplex): void;
  /**
   * Takes a command with a label that this platform did not start: an earlier one did, or the machine whose memory a fork has.
   * It is killed when absent.
   */
  onKeptCommand?(machineId: string, command: GuestCommand, label: Buffer): void;
}
