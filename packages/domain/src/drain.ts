/** A drain: the platform takes no new work, usually because its host is about to go down. */

/** What is stored about a drain. Times are RFC 3339. */
export interface DrainRecord {
  /** Whether the machines that run are suspended. */
  suspend: boolean;
  startedAt: string;
  /** When machines that are not asleep by then are left as they are. Null without a suspend. */
  deadline: string | null;
  /** Since when nothing is left to do. Null until then, and always without a suspend. */
  completedAt: string | null;
  /** Identifies the boot of the host in which the drain began. */
  bootId: string;
}

/** What a client asks for. */
export interface DrainRequest {
  /** Default: false. */
  suspend?: boolean;
  /** How long machines may take to be suspended, in seconds. Default: {@link DRAIN_TIMEOUT_S}. Only with `suspend`. */
  timeoutS?: number;
}

/** A machine that a drain suspends, or leaves running. */
export interface DrainedMachine {
  id: string;
  app: string;
  name: string;
  /** `left`: it keeps running, and loses its memory when the host goes down. */
  result: "waiting" | "suspending" | "suspended" | "left";
  /** Why it was left. */
  reason: string | null;
}

/** How long `drain --suspend` takes at most by default, in seconds: less than the 120 s that the systemd unit gives it. */
export const DRAIN_TIMEOUT_S = 90;
/** The longest drain that a client may request, in seconds. No host waits for an hour to shut down. */
export const MAX_DRAIN_TIMEOUT_S = 3600;
/** When to try again what a drain refused, in seconds. A host takes about as long to restart. */
export const DRAIN_RETRY_S = 30;
