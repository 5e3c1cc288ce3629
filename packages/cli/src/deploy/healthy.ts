/** Waits until a machine has shown that its new version works. */
import { setTimeout as delay } from "node:timers/promises";
import type { Machine } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { hasCrashed, lastWords } from "../crashed.ts";
import { CliError, toFailure } from "../failure.ts";
import { waitForRun } from "../waiting.ts";

const LOOK_MS = 250;

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
  try {
    await waitForRun(context, id, { waitTimeout });
  } catch (error) {
    if (toFailure(error).error !== "deadline_exceeded") throw error;
    return { ok: false, text: `it did not come up within ${waitTimeout} s` };
  }
  for (;;) {
    const machine = await client.getMachine(context.app, id);
    const verdict = verdictOf(machine);
    if (verdict !== undefined && !verdict.ok && hasCrashed(machine))
      return { ...verdict, lastWords: await lastWords(context, id) };
    if (verdict !== undefined) return verdict;
    if (Date.now() > deadline) {
      const why = machine.state_reason ?? machine.checks.map(({ name, output }) => `${name}: ${output}`).join("; ");
      return { ok: false, text: `it did not pass within ${waitTimeout} s${why === "" ? "" : `: ${why}`}` };
    }
    await delay(LOOK_MS);
  }
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
