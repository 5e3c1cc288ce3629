/** Limits and time-outs of sandboxes, each with its reason. */
import { SANDBOX_TIMEOUT_S } from "@hibernaut/domain/limits";

/**
 * How long a sandbox lives unless its client says otherwise, in seconds: as the API documents it. A request that wakes one
 * gives it at least that: with a time of 0, it would be paused before it has answered.
 */
export const DEFAULT_TIMEOUT_S = 15;
/** The same for the second version of the route that makes one. */
export const DEFAULT_TIMEOUT_V2_S = 300;
/** The longest that a client may ask for, in seconds. */
export const MOST_TIMEOUT_S = SANDBOX_TIMEOUT_S.maximum;
/** How long a request waits until its sandbox runs, in milliseconds: a little less than the clients' own 60 s. */
export const RUNNING_TIMEOUT_MS = 55_000;
/** The same for a pause, which writes the memory to the disk. */
export const PAUSED_TIMEOUT_MS = 55_000;
/** The same for the end of a sandbox. */
export const GONE_TIMEOUT_MS = 30_000;
/** How many sandboxes a page of a list has at most. */
export const MOST_LISTED = 100;
/** All labels of a sandbox, in bytes: they are in its record, which is read and written whole. */
export const MOST_METADATA_BYTES = 16_384;
/** All environment variables of a sandbox, in bytes, for the same reason. */
export const MOST_ENV_BYTES = 65_536;
/** A time that ended while the platform was down is noticed within this time, in milliseconds. Timers cannot be longer than 24 days. */
export const LONGEST_NAP_MS = 60 * 60_000;
/** After a pause that failed, the next one is tried after this many milliseconds. */
export const TRY_AGAIN_MS = 30_000;
