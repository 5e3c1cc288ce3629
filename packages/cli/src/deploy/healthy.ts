/** Waits until a machine has shown that its new version works. */
import type { Machine, WaitState } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { hasCrashed, lastWords } from "../crashed.ts";
import { CliError, toFailure } from "../failure.ts";
import { waitFor, waitForRun } from "../waiting.ts";

/** States in which a machine has shown whether it works. */
const VERDICTS: readonly WaitState[] = ["healthy", "unhealthy", "stopped", "failed", "restarting", "suspended"];

/** Whether the machine works, in words. */
type HealthVerdict = { ok: true; text: string } | { ok: false; text: string; lastWords?: string };

/** Judges a machine. Pure; undefined while it is too early to tell. */
export function verdictOf(machine: Machine): HealthVerdict | undefined {
  const { state, state_reason: reason, checks, config, crash, unreachable } = machine;
  if (crash !== null && hasCrashed(machine))
    return { ok: false, text: `it crashed${crash.at_start ? " on start" : ""}: ${crash.reason}` };
  if (unreachable !== null) return { ok: false, text: unreachable };
  if (state !== "running") return { ok: false, text: `it is ${state}${reason === null ? "" : `: ${reason}`}` };
  const failed = checks.find(({ status }) => status === "critical");
  if (failed !== undefined) return { ok: false, text: `its check ${failed.name} fails: ${failed.output}` };
  const wanted = Object.keys(config.checks ?? {}).length;
  // Without checks the ports of its services have to be open, and the platform says while they are not.
  const works = (config.services ?? []).length === 0 ? "it is up" : "it answers on its ports";
  if (wanted === 0) return reason === null ? { ok: true, text: works } : undefined;
  const passing = checks.filter(({ status }) => status === "passing").length;
  return passing >= wanted ? { ok: true, text: "its checks pass" } : undefined;
}

/** Waits for a verdict, up to `waitTimeout` seconds. */
export async function untilHealthy(context: Context, id: string, waitTimeout: number): Promise<HealthVerdict> {
  const client = await context.client();
  const deadline = Date.now() + waitTimeout * 1000;
  let late = `it did not come up within ${waitTimeout} s`;
  try {
    const { state } = await waitForRun(context, id, { waitTimeout });
    late = `it did not pass within ${waitTimeout} s`;
    const leftS = Math.max(1, Math.ceil((deadline - Date.now()) / 1000));
    if (state === "running") await waitFor(context, id, [...VERDICTS], { waitTimeout: leftS });
  } catch (error) {
    if (toFailure(error).error !== "deadline_exceeded") throw error;
  }
  const machine = await client.getMachine(context.app, id);
  const verdict = verdictOf(machine);
  if (verdict === undefined || Date.now() > deadline) return verdict?.ok === true ? verdict : tooLate(machine, late);
  return !verdict.ok && hasCrashed(machine) ? { ...verdict, lastWords: await lastWords(context, id) } : verdict;
}

function tooLate({ state_reason: reason, checks }: Machine, late: string): HealthVerdict {
  const why = reason ?? checks.map(({ name, output }) => `${name}: ${output}`).join("; ");
  return { ok: false, text: `${late}${why === "" ? "" : `: ${why}`}` };
}

/** The error for a machine that does not work, with what to do next. */
export function stoppedError(
  context: Context,
  id: string,
  { text: why, lastWords: words = "" }: { text: string; lastWords?: string },
  left: number,
  oldImage: string | undefined,
): CliError {
  const rest = left === 0 ? "" : `The other ${left} machine${left === 1 ? " keeps" : "s keep"} the old version. `;
  const back = oldImage === undefined ? "" : `, or go back: hibernaut deploy --app ${context.app} --image ${oldImage}`;
  const what = `Machine ${id} has the new version, and ${why.replace(/\.$/, "")}.${words}`;
  const next = `${rest}See \`hibernaut logs --app ${context.app} -m ${id}\`, fix it and deploy again${back}.`;
  return new CliError("failed_precondition", [what, next].join(words === "" ? " " : "\n"));
}
