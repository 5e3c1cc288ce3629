/** The records that are stored about apps, machines and releases. */
import type { AppNetwork } from "./app-network.ts";
import type { MachineConfig } from "./config.ts";
import type { LeaseTerms, MachineLease } from "./lease.ts";
import type { Preview } from "./preview.ts";
import type { QuotaOverrides } from "./quota.ts";
import type { ProgramDefaults, Sandbox } from "./sandbox.ts";

/** States that last. A machine is `restarting` between the end of its app and the next start by the restart policy. */
export const RESTING_STATES = ["created", "running", "suspended", "stopped", "failed", "restarting"] as const;
/** States that end by themselves, within a bound. */
const PASSING_STATES = ["starting", "suspending", "stopping", "updating", "destroying"] as const;
export const STATES = [...RESTING_STATES, ...PASSING_STATES, "destroyed"] as const;

export type RestingState = (typeof RESTING_STATES)[number];
export type MachineState = (typeof STATES)[number];

/** Whether a state lasts until someone or something acts on the machine. */
export function isResting(state: MachineState): state is RestingState {
  return (RESTING_STATES as readonly string[]).includes(state);
}

/** States without a guest, and without one to come. */
const STILL_STATES: readonly MachineState[] = ["created", "suspended", "stopped", "failed"];

/** Whether a machine in this state may be copied to another host: its files stay as they are until it is started. */
export function mayTravel({ state }: Pick<MachineRecord, "state">): boolean {
  return STILL_STATES.includes(state);
}

/** A snapshot that is published and not consumed. */
export interface SnapshotRecord {
  generation: string;
  created_at: string;
  /** Size on disk. */
  size_bytes: number;
  /** The version of the app's secrets when it was taken; absent without secrets. It is resumed only with the same ones. */
  secrets?: string;
}

/**
 * How a machine comes up. `resume`: from its snapshot. `warm`: the same state, in the VMM that was kept when it was
 * taken. `cold`: from scratch.
 */
export const BOOT_KINDS = ["warm", "resume", "cold"] as const;
export type BootKind = (typeof BOOT_KINDS)[number];

/** How a machine was last started. */
export interface LastBoot {
  kind: BootKind;
  /** Why it was a cold start, or why it resumed: a stable word and, after a colon, details. */
  reason: string;
  at: string;
  duration_ms: number;
}

/** The state that a machine should reach after its passing state. Null for the usual one. */
export type Goal = "running" | "restarting" | "destroyed" | null;

/** How an app last ended by itself, and what follows. Kept until a command changes the machine or the machine sleeps. */
export interface Crash {
  at: string;
  /** For people, e.g. `the app exited with code 1`. */
  reason: string;
  /** Null when the virtual machine disappeared. */
  exit_code: number | null;
  /** Whether the app ended before it listened on its ports. */
  at_start: boolean;
  /** The number of the next start, counted from 1. */
  attempt: number;
  max_attempts: number;
  /** When the next start is due, RFC 3339. Null when the restart policy allows none. */
  retry_at: string | null;
}

/** What an update changes. Stored before the update is carried out. */
export interface PendingUpdate {
  config: MachineConfig;
  version: string;
  imageDigest: string;
  bundleVersion: string;
  /** The resting state from which the update started. */
  from: RestingState;
  /** RFC 3339. Absent in records of earlier releases. */
  requestedAt?: string;
  /** Only in records of earlier releases: the update just discards the snapshot, for this reason. */
  coldReason?: string;
}

/** A new version of a sleeping machine is started before anyone needs it, so that a wake finds a snapshot. */
export interface Prewarm {
  /** What it waits for before the machine sleeps again: its health, or also for a program in it to say so. */
  until: "healthy" | "prepared";
  /**
   * `taken`: a request or a person needed the machine first, which was left to them as it was. `failed`: the machine did
   * not get that far, and sleeps without a snapshot.
   */
  status: "pending" | "done" | "taken" | "failed";
  /** For people. Null while it is pending, and when there is nothing to add. */
  reason: string | null;
  /** When it was requested, RFC 3339. */
  since: string;
  /** A program in the machine said that it is prepared. */
  prepared: boolean;
}

/** A keep-awake lease: the app asked not to be put to sleep. */
export interface KeepAwake {
  /** When the lease ends, RFC 3339. */
  until: string;
  reason: string;
}

/** Why a machine keeps running that should sleep. */
export interface NotSuspended {
  /** `drain`: the host may go down with the machine running. `proxy`: the machine is idle. */
  by: "drain" | "proxy";
  reason: string;
}

/** From whose memory a machine was born. */
export interface Origin {
  /** `fork`: of a machine at work or asleep. `template`: of what was kept of one. `backup`: of one in a backup. */
  kind: "fork" | "template" | "backup";
  /** The machine whose memory it was. It may be gone. */
  machine: string;
  /** The template, which may be gone. Absent for the others. */
  template?: string;
}

/** Everything that is stored about a machine. Times are RFC 3339 in UTC. */
export interface MachineRecord {
  /** 14 hex digits. */
  id: string;
  app: string;
  name: string;
  state: MachineState;
  /** The state to reach after the current passing state. Null for the usual one. */
  goal: Goal;
  region: string;
  /** A ULID that changes with every update. */
  version: string;
  config: MachineConfig;
  imageDigest: string;
  bundleVersion: string;
  /**
   * The machine gets the newest guest bundle at its next cold start, and this version. Absent or null when it keeps the
   * bundle that it has.
   */
  bundleMove?: { version: string } | null;
  address: string;
  /** In a cluster: counts the machine's owners up to this host. Absent on a host alone, and until the machine is claimed. */
  epoch?: number;
  /**
   * In a cluster: the directory was restored from a backup that gives the machine to another host, while this copy of it is
   * newer. It stays so, whatever becomes of the older copy, until the machine is this host's again. Absent otherwise.
   */
  disputed?: boolean;
  snapshot: SnapshotRecord | null;
  /** The generation that the current suspend will publish. */
  capturing: string | null;
  /** Why there is no snapshot to resume from; the reason of the next cold start. */
  coldReason: string;
  /** Whether the next cold start resets the writable layer. */
  resetLayer: boolean;
  /** Why the stop in progress keeps the writable layer. Absent or null for a stop that resets it. */
  keepLayer?: string | null;
  /** Whether a drain suspended the machine, or is doing so: it starts again when the drain is over. */
  drained?: boolean;
  /** Why the running machine was not suspended when it should have been. Absent or null when it was, or should not be. */
  notSuspended?: NotSuspended | null;
  pending: PendingUpdate | null;
  lastBoot: LastBoot | null;
  /** Why the machine is in its state: the error of `failed`, how the app ended for `stopped`. */
  stateReason: string | null;
  /** Why requests cannot reach a running app that listens on other ports or addresses. Absent or null when they can. */
  unreachable?: string | null;
  /** Whether the proxy neither gives the machine requests nor wakes it or puts it to sleep. Absent: it does. */
  cordoned?: boolean;
  /** The prewarm that came with the last update. Absent or null when there was none. */
  prewarm?: Prewarm | null;
  /** Absent or null when the app has no keep-awake lease. */
  keepAwake?: KeepAwake | null;
  /** When the machine wants to be awake again, if it sleeps by then. Absent or null when it planned no wake. */
  wakeAt?: string | null;
  /** The lease that a client took, which may have ended. Absent or null when none did, and when it was given back. */
  lease?: MachineLease | null;
  /**
   * The last due time of the schedule that was handled, or when the schedule was set. Absent or null without a schedule,
   * and in records of earlier releases.
   */
  scheduleHandled?: string | null;
  /** Consecutive starts by the restart policy. */
  restarts: number;
  /**
   * The release whose command the machine runs. It is destroyed when the command ends, or, if the platform ends first,
   * when the next one starts. Absent in all other machines.
   */
  releaseCommand?: number;
  /** The machine is made for a while only, such as for a template: it is destroyed after it, or by the next platform. Absent in all others. */
  temporary?: true;
  /** Absent when the machine was not born from the memory of another one. */
  origin?: Origin;
  /**
   * Its memory is still that of its origin: before anything of the app runs, its guest has to become this machine. Absent or
   * false once it ran.
   */
  newborn?: boolean;
  /** It waits in the pool of its template, asleep, until someone asks for a machine. Absent in all others. */
  pooled?: true;
  /** Absent in all machines but sandboxes. */
  sandbox?: Sandbox;
  /** How programs of sandboxes begin in it, and in what is born from it. Absent unless its template was built that way. */
  programs?: ProgramDefaults;
  /** Absent or null when the app has not ended by itself. */
  crash?: Crash | null;
  createdAt: string;
  /** The host that owns the machine now: only in what followers of this host's machines are told last. Never stored. */
  movedTo?: string;
  /** When the machine came into its state. Absent in records of earlier releases. */
  stateSince?: string;
  /** When the history got its last entry. */
  updatedAt: string;
}

/** Returns when the machine came into its state, RFC 3339. */
export function inStateSince({ stateSince, updatedAt }: Pick<MachineRecord, "stateSince" | "updatedAt">): string {
  return stateSince ?? updatedAt;
}

/** An entry of a machine's history. `type` is a documented word; `from` is null for a new machine. */
export interface MachineEvent {
  at: string;
  type: string;
  from: MachineState | null;
  to: MachineState;
  details: Record<string, unknown>;
}

/** A name that owns machines, hostnames, secrets, volumes and releases. */
export interface AppRecord {
  name: string;
  createdAt: string;
  /** Its limits in place of the platform's. Absent when it has none of its own. */
  quota?: QuotaOverrides;
  /** Whether anyone may see how it is. Absent: no. */
  statusPage?: true;
  /** The network that it shares with other apps. Absent: its machines are among themselves. */
  network?: AppNetwork;
  /** What it is a preview of, and until when. Absent for every other app. */
  preview?: Preview;
}

/** A version of an app that was deployed. */
export interface ReleaseRecord {
  /** Counts up from 1. */
  version: number;
  /** `abandoned` when the client that deployed it stopped reporting. */
  status: "pending" | "complete" | "failed" | "abandoned";
  /** As the client named it. */
  image: string;
  digest: string;
  description: string;
  createdAt: string;
}

/** Whether a machine can be suspended. */
export interface Eligibility {
  eligible: boolean;
  /** A sentence for each requirement that is not met. */
  reasons: string[];
}

/** A machine to create. */
export interface CreateMachine {
  name?: string;
  region?: string;
  config: MachineConfig;
  /** Do not start the machine. Default: false. */
  skipLaunch?: boolean;
  /** Cordon the machine from the beginning. Default: false. */
  cordoned?: boolean;
  /** The machine runs the command of this release, and is temporary. */
  releaseCommand?: number;
  /** The machine is made for a while only, such as for a template. */
  temporary?: true;
  /** A client has this lease on the machine from the beginning. */
  lease?: LeaseTerms;
}
