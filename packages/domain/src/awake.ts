/** Why a running machine is not asleep. */

export const AWAKE_REASONS = [
  "no_service",
  "autostop_off",
  "cordoned",
  "not_connected",
  "open_requests",
  "commands",
  "keep_awake",
  "min_machines_running",
  "busy_siblings",
  "recently_used",
  "due",
] as const;

export type AwakeReason = (typeof AWAKE_REASONS)[number];

/** What a running machine is being used for. */
export interface Activity {
  /** Requests, or client connections, that are open, in the unit of the machine's service. */
  open: number;
  /** Commands that run in the machine: exec, console. */
  commands: number;
  /** How long nothing has been open, in milliseconds; 0 while something is. */
  idleMs: number;
  reason: AwakeReason;
  /** The reason as a sentence for people. */
  message: string;
  /** In how many milliseconds it sleeps if nobody uses it until then; null if that does not follow from time alone. */
  sleepsInMs: number | null;
}
