/** What a drain means: pure rules. */
import {
  DRAIN_RETRY_S,
  DRAIN_TIMEOUT_S,
  type DrainedMachine,
  type DrainRecord,
  type DrainRequest,
} from "@hibernaut/domain/drain";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";

/** States from which a machine becomes, or stays, `running` without being asked. */
const COMING: ReadonlySet<MachineState> = new Set(["starting", "updating", "stopping"]);

/**
 * Returns the drain that follows a request: the current one if it does already what is asked. A drain that has not
 * suspended machines can begin to, and one that has left machines running can try them again. Throws `invalid_argument`
 * or `failed_precondition`.
 */
export function drainFor(
  { suspend = false, timeoutS }: DrainRequest,
  current: DrainRecord | undefined,
  { now, bootId }: { now: Date; bootId: string },
): DrainRecord {
  if (!suspend && timeoutS !== undefined)
    throw new HibernautError(
      "invalid_argument",
      "Only a drain that suspends machines has a time limit. Set suspend too, or leave out timeout.",
      { field: "timeout" },
    );
  if (current?.suspend === true && !suspend)
    throw new HibernautError(
      "failed_precondition",
      "The platform is draining already, and suspends its machines. End that first: `hibernaut undrain`.",
    );
  if (current !== undefined && (!suspend || (current.suspend && current.completedAt === null))) return current;
  const deadline = suspend ? new Date(now.getTime() + (timeoutS ?? DRAIN_TIMEOUT_S) * 1000).toISOString() : null;
  const startedAt = current?.startedAt ?? now.toISOString();
  return { suspend, startedAt, deadline, completedAt: null, bootId };
}

/**
 * Whether a drain continues when the platform starts. It does not once its host was restarted, which is what a drain is
 * for, nor once it is complete: an operator who starts the platform then wants it to work.
 */
export function continues(drain: DrainRecord, bootId: string): boolean {
  return drain.bootId === bootId && drain.completedAt === null;
}

/** Whether the machine is awake, or will be: a drain that suspends has to wait for it. */
export function isAwake({ state, goal }: Pick<MachineRecord, "state" | "goal">): boolean {
  return (
    state === "running" ||
    state === "suspending" ||
    (COMING.has(state) && (state === "starting" || goal === "running" || goal === "restarting"))
  );
}

/** How far a drain that suspends has come with a machine. Undefined for a machine that it does not concern. */
export function progressOf(record: MachineRecord): DrainedMachine | undefined {
  const { id, app, name, state, drained, notSuspended } = record;
  const left = notSuspended?.by === "drain" ? notSuspended.reason : null;
  const result = drained === true && state !== "suspending" ? "suspended" : drained === true ? "suspending" : undefined;
  if (result !== undefined) return { id, app, name, result, reason: null };
  if (!isAwake(record)) return undefined;
  return { id, app, name, result: left === null ? "waiting" : "left", reason: left };
}

/** The refusal of everything that would start a machine. */
export function drainingRefusal({ startedAt }: DrainRecord): HibernautError {
  return new HibernautError(
    "draining",
    `The platform is draining since ${startedAt}: it starts and creates no machines. Try again when it is back, or end the drain with \`hibernaut undrain\`.`,
    { since: startedAt, retry_after_s: DRAIN_RETRY_S },
  );
}
