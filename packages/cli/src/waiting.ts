/** Waits for machines, one or many at once. */
import type { HibernautClient, Machine, MachineState, WaitState } from "@hibernaut/client";
import { type Option, type OptionValues, type Result, timeOption } from "./command.ts";
import type { Context } from "./context.ts";
import { crashError, hasCrashed, isCrashLoop } from "./crashed.ts";
import { WAIT_TIMEOUT_S } from "./defaults.ts";
import { CliError, failureText, toFailure } from "./failure.ts";

/** An app without a port to wait for counts as running at once: one that is broken ends within this time. */
const EARLY_CRASH_S = 2;

/**
 * States that end the wait for a machine to run: it is running, resting, its app crashed and is retried later, or has ended
 * already and its machine with it.
 */
const RUN_ENDS: readonly WaitState[] = ["running", "stopped", "failed", "restarting", "destroyed"];

/** Longer waits take several requests: a proxy in between may cut off a silent connection. */
const REQUEST_S = 60;

/** The option of a command that only waits. */
export const WAIT_TIMEOUT = timeOption("--wait-timeout <time>", "how long to wait", WAIT_TIMEOUT_S);
/** The options of a command that acts and then waits. */
export const WAITING = [
  WAIT_TIMEOUT,
  { flags: "--no-wait", description: "return as soon as the platform has accepted the request" },
] as const satisfies readonly Option[];
export type WaitingOptions = OptionValues<typeof WAITING>;

type WaitOptions = NonNullable<Parameters<HibernautClient["waitForMachine"]>[2]>;

/** Waits until the machine is in one of the states; fails with `deadline_exceeded` (exit code 124). */
export async function waitFor(
  context: Context,
  id: string,
  states: readonly WaitState[],
  options: WaitingOptions,
): Promise<MachineState> {
  const client = await context.client();
  return inRequests(context, id, states, options, (wait) => client.waitForMachine(context.app, id, wait));
}

/** Waits as {@link waitFor} does, and returns which of the states it was. The machine may be in another by then. */
export async function firstReached(
  context: Context,
  id: string,
  states: readonly WaitState[],
  options: WaitingOptions,
): Promise<WaitState> {
  const client = await context.client();
  return inRequests(context, id, states, options, (wait) => client.firstReached(context.app, id, wait));
}

async function inRequests<Found>(
  context: Context,
  id: string,
  states: readonly WaitState[],
  { waitTimeout = WAIT_TIMEOUT_S }: WaitingOptions,
  ask: (options: WaitOptions) => Promise<Found>,
): Promise<Found> {
  const deadline = Date.now() + waitTimeout * 1000;
  for (;;) {
    const leftS = Math.ceil((deadline - Date.now()) / 1000);
    try {
      return await ask({ state: states, timeout: Math.min(REQUEST_S, Math.max(1, leftS)) });
    } catch (error) {
      if (toFailure(error).error !== "deadline_exceeded") throw error;
      if (leftS <= REQUEST_S) throw await tooLate(context, id, states, waitTimeout);
    }
  }
}

async function tooLate(context: Context, id: string, states: readonly WaitState[], waited: number): Promise<CliError> {
  const { state, state_reason: reason } = await (await context.client()).getMachine(context.app, id);
  const now = reason === null ? state : `${state} (${reason.replace(/\.$/, "")})`;
  const next = `See \`hibernaut machine status ${id} --app ${context.app}\`, or allow more time with --wait-timeout.`;
  return new CliError(
    "deadline_exceeded",
    `Machine ${id} is not ${states.join(" or ")} after ${waited} s: it is ${now}. ${next}`,
  );
}

/**
 * Waits until the machine is running, or has shown that it will not. A machine without services that has booted gets a
 * moment more: nothing tells when it is up, and most broken apps exit at once. One that was resumed had been up before.
 */
export async function waitForRun(context: Context, id: string, options: WaitingOptions): Promise<Machine> {
  const client = await context.client();
  const reached = await waitFor(context, id, [...RUN_ENDS], options);
  const machine = await client.getMachine(context.app, id);
  const toldWhenUp = (machine.config.services ?? []).length > 0 || (machine.last_boot?.kind ?? "cold") !== "cold";
  if (reached !== "running" || toldWhenUp) return machine;
  const early = client.waitForMachine(context.app, id, {
    state: RUN_ENDS.filter((state) => state !== "running"),
    timeout: EARLY_CRASH_S,
  });
  return early.then(
    () => client.getMachine(context.app, id),
    (error: unknown) => {
      if (toFailure(error).error === "deadline_exceeded") return machine;
      throw error;
    },
  );
}

/** Waits as the options ask and returns the machine as it is then. Fails when it is not in the wanted state. */
export async function settle(
  context: Context,
  id: string,
  wanted: WaitState,
  options: WaitingOptions,
): Promise<Machine> {
  const client = await context.client();
  if (options.wait === false) return client.getMachine(context.app, id);
  if (wanted === "running") return settleRunning(context, id, options);
  // A request may overtake the suspend. The machine is running again then, which ends the wait as well.
  // A machine with auto_destroy is gone once it is stopped.
  const ends: WaitState[] = wanted === "stopped" ? [wanted, "destroyed"] : [wanted];
  const states: WaitState[] = wanted === "suspended" ? ["settled"] : [...ends, "failed"];
  const reached = await waitFor(context, id, states, options);
  const machine = await client.getMachine(context.app, id);
  if (ends.some((end) => end === reached) || wanted === "settled") return machine;
  const why = machine.state_reason ?? (wanted === "suspended" ? "something woke it" : "the platform gives no reason");
  throw new CliError(
    "failed_precondition",
    `Machine ${id} is ${reached}, not ${wanted}: ${why.replace(/\.$/, "")}. See \`hibernaut machine events ${id}\`.`,
  );
}

async function settleRunning(context: Context, id: string, options: WaitingOptions): Promise<Machine> {
  const machine = await waitForRun(context, id, options);
  if (hasCrashed(machine)) {
    const repair = `Fix it and run \`hibernaut machine update ${id} --app ${context.app}\` with the change, or \`hibernaut deploy\``;
    const end = `\`hibernaut machine stop ${id} --app ${context.app}\` ends the retries`;
    const gone = "It is destroyed, because of its auto_destroy. Fix the app and run another machine.";
    const advice = isCrashLoop(machine) ? `${repair}; ${end}.` : `${repair}.`;
    throw await crashError(context, machine, machine.state === "destroyed" ? gone : advice);
  }
  // A job may have finished by now; an app with services must not have.
  const ended = ["stopped", "destroyed"].includes(machine.state) && (machine.config.services ?? []).length > 0;
  if (ended || machine.state === "failed") {
    const what = ended ? "exited at its start" : "could not be started";
    const why = machine.state_reason?.replace(/\.$/, "") ?? "no reason is known";
    const next = `See \`hibernaut machine events ${id} --app ${context.app}\`.`;
    throw new CliError("failed_precondition", `Machine ${id} ${what}: ${why}. ${next}`);
  }
  // Before the first visitor finds out.
  if (machine.unreachable !== null) context.warn(`Requests do not reach machine ${id}: ${machine.unreachable}.`);
  return machine;
}

/** The result for one of several machines. */
export interface MachineOutcome {
  text: string;
  /** What `--json` shows in addition to the machine's id. */
  data?: Record<string, unknown>;
}

/** Does the same to all machines at once; a failure of one does not affect the others. */
export async function forEach(ids: readonly string[], act: (id: string) => Promise<MachineOutcome>): Promise<Result> {
  const settled = await Promise.allSettled([...new Set(ids)].map(async (id) => ({ id, ...(await act(id)) })));
  const document = settled.map((end, index) =>
    end.status === "fulfilled"
      ? { machine_id: end.value.id, ok: true, ...end.value.data }
      : { machine_id: ids[index], ok: false, ...toFailure(end.reason) },
  );
  const text = settled.flatMap((end) => (end.status === "fulfilled" ? [end.value.text] : [])).join("\n");
  const failures = settled.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
  return {
    document,
    text,
    failures: failures.filter((failure, index) => index === failures.findIndex((other) => same(other, failure))),
  };
}

function same(a: unknown, b: unknown): boolean {
  return failureText(toFailure(a)) === failureText(toFailure(b));
}
