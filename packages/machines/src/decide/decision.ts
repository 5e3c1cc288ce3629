/** What `decide` needs to know in addition to record and event, and what it answers. */
import type { StopConfig } from "@hibernaut/domain/config";
import type { HibernautError } from "@hibernaut/domain/errors";
import type { MachineEvent, MachineRecord } from "@hibernaut/domain/machine";
import type { EligibilityLimits } from "../eligibility.ts";
import type { Effect } from "./effect.ts";
import type { RecoveryStep } from "./events.ts";

/** Time and ids come in here, so that a decision depends on nothing else. */
export interface DecideContext {
  now: Date;
  /** A fresh ULID, for the generation or version that the decision may create. */
  id: string;
  limits: EligibilityLimits;
  /** The terms of the stop under way, over those of the machine. */
  stopTerms?: StopConfig | undefined;
  /** Why the machine's app may not have one more machine that runs; undefined if it may. By default, it may. */
  startRefusal?(): HibernautError | undefined;
}

/** Brings host and record together after the platform restarted. */
export interface TakeOver {
  type: "take_over";
  /**
   * `adopt`: the guest keeps running unnoticed. `wake`: the same, but its CPUs are paused: run them and set the clock.
   * `kill`: it must not run on.
   */
  vmm: "none" | "adopt" | "wake" | "kill";
  /** The one generation to keep; all others are discarded. */
  keep: string | null;
  /** Whether the agent answers already; one whose start is unfinished may not be up yet. */
  hello: boolean;
  next: RecoveryStep;
  /** For the platform's log; empty when there is nothing to say. */
  reason: string;
}

/** Who learns what. */
export interface Tell {
  /** For the caller of a command, or for the platform's log: why nothing happens. */
  refusal?: HibernautError;
  /** For the machine's history and its log, stored together with the record. */
  history?: MachineEvent;
  /** A line for the machine's log that is not in its history. */
  log?: string;
  /** Those who follow the machine hear of the new record. */
  followers?: true;
  /** No guest and no snapshot is left: streams into the guest end. */
  memoryGone?: true;
}

export interface Decision {
  /** What to store; the very object that was passed in when nothing changes. */
  record: MachineRecord;
  effect: Effect | TakeOver | null;
  tell: Tell;
  /** The change is only for people to read: it counts even if it cannot be stored, because a full disk may be its reason. */
  bestEffort?: true;
  /**
   * Others may hear of the change before it is on the disk: what loses it, a power cut, ends the guest that it tells of.
   * After the record before it, recovery starts the machine again, or the machine sleeps.
   */
  unsynced?: true;
}
