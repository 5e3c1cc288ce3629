/** Everything that can happen to a machine, as data. `decide` answers each of these. */
import type { MachineConfig, StopConfig } from "@hibernaut/domain/config";
import type { EgressConfig } from "@hibernaut/domain/egress";
import type { LeaseTerms, MachineLease } from "@hibernaut/domain/lease";
import type { KeepAwake, LastBoot, MachineRecord, Prewarm, SnapshotRecord } from "@hibernaut/domain/machine";
import type { MetadataChange } from "@hibernaut/domain/metadata";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import type { GuestExit } from "@hibernaut/guest";
import type { FailedCarryOver } from "@hibernaut/hypervisor";
import type { BootEffect, Effect, EffectWithOutcome } from "./effect.ts";

/** What a machine's history records in addition to type and states, for example who requested it. */
export type Details = Readonly<Record<string, unknown>>;

/** What someone asks for. */
export type Command = { details?: Details } & (
  | {
      type: "start";
      /** A request at the proxy asks, not a person: the restarts of a crashing app keep counting. Default: false. */
      unattended?: boolean;
    }
  | {
      type: "suspend";
      /** A drain asks: the machine starts again when the drain is over. Default: false. */
      drain?: boolean;
    }
  /**
   * The machine is idle: suspend or stop it. One that cannot be suspended does what `otherwise` says, and its history
   * says why: it is stopped with its writable layer kept (the default), or keeps running.
   */
  | { type: "sleep"; how: "suspend" | "stop"; otherwise?: "stop" | "off" }
  | {
      type: "stop";
      /** Why the writable layer is kept. Without it, the configuration decides. */
      keepLayer?: string;
      /** A client asks, or the machine itself: one with `auto_destroy` is destroyed then. Default: false. */
      wanted?: boolean;
      /** How this stop asks the app to exit. What is absent says the machine. Of one under way, they only bring the end nearer. */
      terms?: StopConfig;
    }
  | { type: "restart"; terms?: StopConfig }
  /** A full new configuration. The machine also moves to the current guest bundle. */
  | {
      type: "update";
      config: MachineConfig;
      imageDigest: string;
      /** Start a machine that sleeps with the new version, and let it sleep again after this. Default: it sleeps on. */
      prewarm?: Prewarm["until"];
    }
  /** Nothing changes but the guest bundle, which becomes the current one. */
  | { type: "move_bundle" }
  /** A machine that may have a guest is only destroyed with `force`. Default: false. */
  | { type: "destroy"; force?: boolean }
  /** The snapshot must never be resumed. `reason` becomes the reason of the next cold start. */
  | { type: "discard_snapshot"; reason: string }
);

/** How a start brought its guest up. */
export interface Boot {
  lastBoot: LastBoot;
  /** Why no request reaches the app, which does listen somewhere. */
  unreachable: string | null;
  stateReason: string | null;
}

/** How an effect ended, or what happened to a guest that nobody was working on. Facts only: `decide` draws the conclusions. */
export type EffectOutcome = { details?: Details } & (
  | { type: "started"; boot: Boot }
  | { type: "start_failed"; reason: string }
  /** The machine may not start on this host now, and is as it was. */
  | { type: "start_refused"; reason: string }
  /** The host lacks something that it will have again, such as descriptors. */
  | { type: "start_hindered"; reason: string }
  /** The VMM was killed from outside while it started. `start` is what was being tried. */
  | { type: "start_killed"; reason: string; start: BootEffect }
  /** `snapshot` is null when it was published but can no longer be read. */
  | { type: "captured"; snapshot: SnapshotRecord | null }
  | { type: "capture_cancelled"; reason: string }
  | { type: "capture_failed"; reason: string }
  /** `exit` says how the app ended, if it did so by itself. */
  | { type: "halted"; exit?: GuestExit }
  | { type: "halt_failed"; reason: string }
  | { type: "updated" }
  | { type: "update_failed"; reason: string }
  | { type: "removed" }
  | { type: "remove_failed"; reason: string }
  /** `boot` when the app ended before the start was over. */
  | { type: "app_ended"; exit: GuestExit; boot?: Boot }
  /** The VMM is gone. */
  /** `unwatched`: while no platform ran, most likely with the whole host. That says nothing about the machine. */
  | { type: "lost"; reason: string; unwatched?: true }
  /** The wait before the next start by the restart policy is over. */
  | { type: "retry" }
);

/** What an effect must store before it may go further. */
export type Milestone =
  /** Stored before the guest's CPUs run: a snapshot never runs twice. */
  | { type: "snapshot_consumed" }
  /** It does not fit: `reason` explains the cold start that follows. `carryOver`: it failed in another version of the hypervisor than its own, which will not be tried again. */
  | { type: "snapshot_refused"; reason: string; carryOver?: FailedCarryOver }
  /**
   * The writable layer is ready. `address` is a new one if the old one does not belong to this network; `moved` says what
   * becomes of a machine that was to get the newest guest bundle.
   */
  | { type: "cold_start"; reason: string; address?: string; moved?: Moved };

/** What changes in a machine that moves to another guest bundle. */
export type Moved = Pick<MachineRecord, "version" | "bundleVersion">;

/** What a machine has of the template that it was restored from. */
export type Restored = Pick<
  MachineRecord,
  "config" | "imageDigest" | "bundleVersion" | "version" | "snapshot" | "origin"
>;

/** What is worth knowing about a machine without any effect on its state. */
export type Note =
  | { type: "keep_awake"; lease: KeepAwake | null }
  /** When the machine wants to be awake, RFC 3339; null when it no longer does. */
  | { type: "plan_wake"; at: string | null }
  /** A program in the machine says that the prewarm may end. */
  | { type: "prepared" }
  /** The prewarm in progress is over. */
  | { type: "prewarm_over"; status: "done" | "taken" | "failed"; reason: string | null }
  /** Whether the proxy leaves the machine alone. */
  | { type: "cordon"; on: boolean }
  /** Someone takes the machine out of its pool, and names it. */
  | {
      type: "taken";
      name: string;
      cordoned: boolean;
      egress?: EgressConfig | null;
      sandbox?: Sandbox;
      lease?: LeaseTerms;
    }
  /** Where the machine may connect to from now on; null: wherever the network lets machines. */
  | { type: "egress"; egress: EgressConfig | null }
  /** The machine was kept from connecting to something. */
  | { type: "egress_refused"; details: Details }
  /** A client takes a lease on the machine, or takes it for longer. */
  | { type: "lease"; lease: MachineLease }
  /** There is no lease any more. `forced`: someone ended it who does not have it. */
  | { type: "lease_over"; forced: boolean }
  /** What is written about the machine for programs. */
  | { type: "metadata"; change: MetadataChange }
  /** What makes the machine a sandbox. */
  | { type: "sandbox"; sandbox: Sandbox }
  /** Its files are those of a template from now on, of which `becomes` is what the record says. */
  | { type: "restored"; becomes: Restored }
  /** A client sent the app this signal, by name. */
  | { type: "signal_sent"; signal: string }
  /** Why no request reaches the app; null when one does. */
  | { type: "reachability"; why: string | null }
  /** Why the guest is paused by the host; null once it runs again. */
  | { type: "stalled"; why: string | null }
  /** This state reason no longer holds. */
  | { type: "reason_over"; reason: string }
  /** A drain leaves the machine running: what happens to it when the host goes down is a power cut. */
  | { type: "not_suspended"; reason: string }
  /** The machine's paused VMM is no longer kept, although nobody asked anything of the machine. */
  | { type: "kept_over"; reason: string }
  /** The drain is over, and this machine does not start because of it. */
  | { type: "drain_over" };

/** Time has passed: a run of the schedule, or the planned wake, may be due. */
type TimePassed = { type: "schedule_due" } | { type: "wake_due" };

/** What the platform found on the host after it restarted. */
export interface FoundOnHost {
  type: "found";
  /** The machine's VMM, if one is alive and answers. */
  vmm: "running" | "paused" | "none";
  /** Why there is none, if there was one whose guest could not continue. */
  failure?: string;
  /** Generations that are whole on disk. */
  published: readonly string[];
  /** The generation that the machine was recorded as capturing, if it is published and readable. */
  captured: SnapshotRecord | null;
}

/** What follows once host and record agree. */
export type RecoveryStep =
  | { kind: "rest" }
  | { kind: "effect"; effect: Effect }
  | { kind: "outcome"; outcome: EffectOutcome };

/** The work that followed `found` is done. */
export interface TakenOver {
  type: "taken_over";
  /** `unreachable`: there was a guest to take over, but it did not answer and was ended. */
  guest: "adopted" | "unreachable" | "none";
  /** How the app ended while no platform was running. */
  exit?: GuestExit;
  next: RecoveryStep;
}

/** An effect failed in a way it did not foresee. */
export interface EffectFailed {
  type: "effect_failed";
  effect: EffectWithOutcome["type"];
  reason: string;
}

export type LifecycleEvent =
  | Command
  | EffectOutcome
  | Milestone
  | Note
  | TimePassed
  | FoundOnHost
  | TakenOver
  /** An effect ended after another one took its place. */
  | { type: "superseded"; outcome: EffectOutcome | EffectFailed }
  | EffectFailed;

/** Commands as they appear in a machine's history; `sleep` appears as what it became. */
export const COMMANDS = [
  "start",
  "suspend",
  "stop",
  "restart",
  "update",
  "destroy",
  "discard_snapshot",
] as const satisfies Command["type"][];

/** Outcomes as they appear in a machine's history. */
export const OUTCOMES = [
  "started",
  "start_failed",
  /** The host may not start the machine at the moment: in a cluster, it must know that the machine is its own. */
  "start_refused",
  /** The host could not start the machine, for a reason that passes: it is tried again. */
  "start_hindered",
  "captured",
  "capture_cancelled",
  "capture_failed",
  "halted",
  "halt_failed",
  "updated",
  "update_failed",
  "removed",
  "remove_failed",
  "app_ended",
  /** The app ended and its restart policy starts it again. */
  "app_restarts",
  "lost",
  /** The VMM is gone and the restart policy starts it again. */
  "lost_restarts",
  "retry",
] as const;

/** What else a machine's history has, without any effect on its state. */
export const REMARKS = [
  /** A resume in another build of QEMU failed. */
  "carry_over_failed",
  /** The proxy leaves it alone from now on. */
  "cordoned",
  "uncordoned",
  /** Where it may connect to has changed. */
  "egress_changed",
  /** It was kept from connecting to something by its own rules. */
  "egress_refused",
  /** In a cluster, it came to this host without its files, because its host was lost. */
  "evacuated",
  /** The paused VMM of a suspended machine is no longer kept. */
  "kept_ended",
  /** A client took a lease on it, gave it back, or ended that of another one. */
  "lease_taken",
  "lease_released",
  "lease_cleared",
  /** What is written about it for programs. */
  "metadata_changed",
  /** In a cluster, it left this host, or came to it. */
  "moved_away",
  "moved_in",
  /** It should sleep, and keeps running. */
  "not_suspended",
  /** A prewarm is over, and the state stayed as it was. */
  "prewarm_ended",
  /** The reason that was shown with the state no longer holds. */
  "reason_ended",
  /** It continues from a template from now on, and what it had is gone. */
  "restored",
  /** A run of the schedule was due while the one before was not over. */
  "schedule_skipped",
  /** A client sent the app a signal. */
  "signal_sent",
  /** The host paused the guest. */
  "stalled",
  "stall_ended",
  /** It left the pool of its template. */
  "taken",
  /** The app listens where no request arrives. */
  "unreachable",
  "reachable",
] as const;

export type CommandName = (typeof COMMANDS)[number];
export type OutcomeName = (typeof OUTCOMES)[number];
export type RemarkName = (typeof REMARKS)[number];
/** The types of entries in a machine's history. */
export type HistoryType = "create" | CommandName | OutcomeName | RemarkName;
