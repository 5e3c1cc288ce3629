/** What an effect may see and touch of its machine. */
import type { GuestAgent } from "../../guest/agent.ts";
import type { GuestExit } from "../../guest/protocol.ts";
import type { HypervisorIdentity, Vmm } from "../../hypervisor/contract.ts";
import type { SnapshotOrigin } from "../../snapshots/manifest.ts";
import { guestSize } from "../../domain/config.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { Inside } from "../inside.ts";
import type { Outcome } from "../lifecycle.ts";
import type { MachineLog } from "../logs/machine-log.ts";
import type { Reachability } from "../reachability.ts";
import type { MachineRecord } from "../../domain/machine.ts";

/** A VMM and the connection to the agent in it. */
export interface LiveGuest {
  vmm: Vmm;
  agent: GuestAgent;
  reachability: Reachability;
}

/** How an effect ended. It reports; the lifecycle table decides what follows. */
export interface EffectResult {
  outcome: Outcome;
  /** Stored together with the transition. */
  patch?: Partial<MachineRecord>;
  /** For the machine's history. */
  details?: Record<string, unknown>;
  /** Cleaning that nobody needs to wait for, except the next effect. */
  after?(): Promise<void>;
}

export interface EffectContext {
  readonly deps: MachineDependencies;
  /** Aborted when the effect was cancelled or something else takes its place. */
  readonly signal: AbortSignal;
  readonly record: MachineRecord;
  /** Stores changes at once, without a change of state. */
  patch(changes: Partial<MachineRecord>): void;
  /** Takes back a reason that no longer holds; another one stays. */
  clearReason(reason: string): void;
  readonly live: LiveGuest | undefined;
  /** What the programs in the guest are told and say; it outlives guests. */
  readonly inside: Inside;
  /** What its app prints, and what becomes of it. */
  readonly machineLog: MachineLog;
  /** When the machine last ran, before the start that is under way; undefined for its first. */
  readonly restedSince: string | undefined;
  /** Connects the agent and makes the guest the machine's. */
  attach(vmm: Vmm): Promise<LiveGuest>;
  /** Ends the guest, if there is one, and waits until it is gone. */
  kill(): Promise<void>;
  /** How the app ended, once it did. */
  readonly exit: GuestExit | undefined;
  /** The guest's own account of how the app ended, when nobody was there to hear of it. */
  ended(exit: GuestExit): void;
  /** Settles when the app ends. */
  exited(): Promise<GuestExit>;
}

/**
 * What a snapshot of this machine must agree with: `hypervisor` is the one that runs the guest when it
 * is taken, and the one that would run it when it is resumed.
 */
export function originOf(
  record: MachineRecord,
  deps: MachineDependencies,
  hypervisor: HypervisorIdentity,
): SnapshotOrigin {
  const { cpus, memoryMb } = guestSize(record.config);
  return {
    machineId: record.id,
    machineVersion: record.version,
    hypervisor,
    // The current one, not the machine's: a guest is resumed only beside the agent it was suspended with.
    bundleVersion: deps.bundles.current.version,
    imageDigest: record.imageDigest,
    cpus,
    memoryMb,
  };
}

/** The effect's signal, with an end of its own. */
export function within(signal: AbortSignal, milliseconds: number, what: string): AbortSignal {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`${what} took longer than ${milliseconds} ms`)), milliseconds);
  timer.unref();
  return AbortSignal.any([signal, limit.signal]);
}
