/** Waits for machines, and for many at once. */
import type { Machine, MachineState, WaitState } from "@hibernaut/client";
import type { Option, Result } from "./command.ts";
import type { Context } from "./context.ts";
import { CliError, failureText, toFailure } from "./failure.ts";

/** The values of {@link WAITING}. */
export interface WaitingOptions {
  waitTimeout?: number;
  wait?: boolean;
}

/** A cold start under software emulation takes seconds, an import of a large image minutes. */
const TIMEOUT_S = 120;

/** Longer waits are several requests: what stands between us and the platform may cut a silent one. */
const REQUEST_S = 60;

/** The option of a command that only waits. */
export const WAIT_TIMEOUT: Option = {
  flags: "--wait-timeout <time>",
  description: `how long to wait, in seconds, or e.g. 5m (default: ${TIMEOUT_S})`,
  minimum: 1,
  unit: "seconds",
};
/** The options of a command that acts and then waits. */
export const WAITING: readonly Option[] = [
  WAIT_TIMEOUT,
  { flags: "--no-wait", description: "return as soon as the platform has accepted it" },
];

/** Waits until the machine is in one of the states; fails with `deadline_exceeded` (exit code 124). */
export async function waitFor(
  context: Context,
  id: string,
  states: WaitState[],
  { waitTimeout = TIMEOUT_S }: WaitingOptions,
): Promise<MachineState> {
  const client = await context.client();
  const deadline = Date.now() + waitTimeout * 1000;
  for (;;) {
    const leftS = Math.ceil((deadline - Date.now()) / 1000);
    try {
      return await client.waitMachine(context.app, id, { states, timeoutS: Math.min(REQUEST_S, Math.max(1, leftS)) });
    } catch (error) {
      if (toFailure(error).error !== "deadline_exceeded" || leftS <= REQUEST_S) throw error;
    }
  }
}

/** Waits as the options ask, and gives the machine as it then is; fails when it is not in the wanted state. */
export async function settle(
  context: Context,
  id: string,
  wanted: WaitState,
  options: WaitingOptions,
): Promise<Machine> {
  const client = await context.client();
  if (options.wait === false) return client.getMachine(context.app, id);
  // A suspend may be overtaken by a request: then the machine runs again, which is an end as well.
  // An app may end before it listens: the machine is stopped then, and will not run by itself.
  const ends: WaitState[] = wanted === "running" ? ["running", "stopped", "failed"] : [wanted, "failed"];
  const states: WaitState[] = wanted === "suspended" ? ["settled"] : ends;
  const reached = await waitFor(context, id, states, options);
  const machine = await client.getMachine(context.app, id);
  if (reached === wanted || wanted === "settled") return machine;
  const why = machine.state_reason ?? (wanted === "suspended" ? "something woke it" : "the platform gives no reason");
  throw new CliError(
    "failed_precondition",
    `Machine ${id} is ${reached}, not ${wanted}: ${why.replace(/\.$/, "")}. See \`hibernaut machine events ${id}\`.`,
  );
}

/** What became of one of several machines. */
export interface Outcome {
  text: string;
  /** What `--json` shows beside the machine's id. */
  data?: Record<string, unknown>;
}

/** Does the same to every machine at once; one that fails does not keep the others from it. */
export async function forEach(ids: readonly string[], act: (id: string) => Promise<Outcome>): Promise<Result> {
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
