/** The work that a decision may ask for, as plain data. */
import type { StopConfig } from "@hibernaut/domain/config";

/** Work that follows a decision, with its input. The machine's record, as it is when the work begins, belongs to it too. */
export type Effect =
  /** `restedSince`: when the machine last ran, if it rested since (RFC 3339). `attempt` counts from 1. */
  | { type: "boot"; restedSince: string | null; attempt: number }
  /** Waits until then (RFC 3339); not at all if null. */
  | { type: "back_off"; until: string | null }
  | { type: "capture"; generation: string }
  /**
   * `terms`: of this stop, over those of the machine. `hurried`: it takes the place of a stop
   * under way, and does not wait for open requests.
   * Neither is stored: the platform that continues a stop asks as the machine says.
   */
  | { type: "halt"; terms?: StopConfig; hurried?: true }
  /** `patient`: waits for the stop in progress instead of cutting it short. */
  | { type: "apply_update"; patient: boolean }
  | { type: "remove" }
  /** Ends a capture early; its guest keeps running. */
  | { type: "cancel_capture" }
  /** Cleans up generations that no record needs; with `memory`, also the memory file, which no guest is using. */
  | { type: "discard_snapshots"; memory: boolean };

/** Effects that end in an outcome, one at a time. */
export type EffectWithOutcome = Exclude<Effect, { type: "cancel_capture" } | { type: "discard_snapshots" }>;

/** One start. */
export type BootEffect = Extract<Effect, { type: "boot" }>;
