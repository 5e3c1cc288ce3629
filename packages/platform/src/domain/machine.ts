/** The nouns of the machines module. */
import type { MachineConfig } from "./config.ts";

/** `restarting` rests between the end of its app and the next start that the restart policy gives it. */
const RESTING_STATES = ["created", "running", "suspended", "stopped", "failed", "restarting"] as const;
const PASSING_STATES = ["starting", "suspending", "stopping", "updating", "destroying"] as const;
export const STATES = [...RESTING_STATES, ...PASSING_STATES, "destroyed"] as const;

export type RestingState = (typeof RESTING_STATES)[number];
export type MachineState = (typeof STATES)[number];

export function isResting(state: MachineState): state is RestingState {
  return (RESTING_STATES as readonly string[]).includes(state);
}

/** A snapshot that is published and not consumed. */
export interface SnapshotRecord {
  generation: string;
  created_at: string;
  size_bytes: number;
  /** Which secrets the app had when it was taken; absent is none. It is resumed beside the same ones only. */
  secrets?: string;
}

/** How a machine last came to run. */
export interface LastBoot {
  kind: "resume" | "cold";
  /** Why it was a cold start, or how it came to resume; a stable word and, after a colon, details. */
  reason: string;
  at: string;
  duration_ms: number;
}

/** What a passing state is followed by, when it is not its usual end. */
export type Goal = "running" | "restarting" | null;

/** How an app last ended by itself, and what follows. Kept until somebody takes care of the machine, or it slept. */
export interface Crash {
  at: string;
  /** For people: `the app exited with code 1`. */
  reason: string;
  /** Null when the virtual machine vanished. */
  exit_code: number | null;
  /** It ended before it listened on its ports. */
  at_start: boolean;
  /** The next start is this attempt (from 1) of at most `max_attempts`. */
  attempt: number;
  max_attempts: number;
  /** When that start is due, RFC 3339; null when the restart policy gives it none. */
  retry_at: string | null;
}

/** What an update will change, stored before it is carried out. */
export interface PendingUpdate {
  config: MachineConfig;
  version: string;
  imageDigest: string;
  bundleVersion: string;
  /** The resting state from which the update started. */
  from: RestingState;
  /** Nothing is to change but that there is no snapshot any more: the reason of the cold start that follows. */
  coldReason?: string;
}

/** A lease that an app took for itself. */
export interface KeepAwake {
  /** RFC 3339; over after that. */
  until: string;
  reason: string;
}

/** All that is stored about a machine. Times are RFC 3339 in UTC. */
export interface MachineRecord {
  /** 14 hex digits. */
  id: string;
  app: string;
  name: string;
  state: MachineState;
  /** What the passing state will be followed by, when it is not its usual end. */
  goal: Goal;
  region: string;
  /** A ULID that changes with every update. */
  version: string;
  config: MachineConfig;
  imageDigest: string;
  bundleVersion: string;
  address: string;
  snapshot: SnapshotRecord | null;
  /** The generation that a suspend under way will publish. */
  capturing: string | null;
  /** Why there is no snapshot to resume from; the reason of the next cold start. */
  coldReason: string;
  /** Whether the next cold start resets the writable layer. */
  resetLayer: boolean;
  pending: PendingUpdate | null;
  lastBoot: LastBoot | null;
  /** Why the machine is in its state: the fault of `failed`, the exit of `stopped`. */
  stateReason: string | null;
  /** Why no request reaches the app that runs, although it listens somewhere; absent or null when one does. */
  unreachable?: string | null;
  /** The app asked not to be put to sleep for being idle. */
  keepAwake?: KeepAwake | null;
  /** Starts in a row by the restart policy. */
  restarts: number;
  /** Absent or null when the app has not ended by itself. */
  crash?: Crash | null;
  createdAt: string;
  updatedAt: string;
}

/** One entry of a machine's history. */
export interface MachineEvent {
  at: string;
  type: string;
  from: MachineState | null;
  to: MachineState;
  details: Record<string, unknown>;
}

export interface AppRecord {
  name: string;
  createdAt: string;
}

/** What was deployed to an app. */
export interface ReleaseRecord {
  /** Counts up from 1. */
  version: number;
  /** `pending` also when whoever deployed was interrupted. */
  status: "pending" | "complete" | "failed";
  image: string;
  digest: string;
  description: string;
  createdAt: string;
}

export interface Eligibility {
  eligible: boolean;
  /** Every requirement that is not met, a sentence each. */
  reasons: string[];
}

export interface CreateMachine {
  name?: string;
  region?: string;
  config: MachineConfig;
  skipLaunch?: boolean;
}
