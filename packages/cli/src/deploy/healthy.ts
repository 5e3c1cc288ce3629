/** Waits until a machine that was just replaced has shown that its new version works. */
import { setTimeout as delay } from "node:timers/promises";
import type { Machine } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { CliError, toFailure } from "../failure.ts";
import { waitFor } from "../waiting.ts";

const LOOK_MS = 250;

/** What became of a machine, for people. */
export type Verdict = { ok: true; text: string } | { ok: false; text: string };

/** A pure rule: undefined while it is too early to tell. */
export function verdictOf(machine: Machine): Verdict | undefined {
  const { state, state_reason: reason, checks, config } = machine;
  if (state !== "running") return { ok: false, text: `it is ${state}${reason === null ? "" : `: ${reason}`}` };
  const failed = checks.find(({ status }) => status === "critical");
  if (failed !== undefined) return { ok: false, text: `its check ${failed.name} fails: ${failed.output}` };
  const wanted = Object.keys(config.checks ?? {}).length;
  // Without checks the ports of its services have to be open, and the platform says while they are not.
  if (wanted === 0) return reason === null ? { ok: true, text: "it answers on its ports" } : undefined;
  const passing = checks.filter(({ status }) => status === "passing").length;
  return passing >= wanted ? { ok: true, text: "its checks pass" } : undefined;
}

/** Settles with what became of it, at the latest after the time to wait is over. */
export async function untilHealthy(context: Context, id: string, waitTimeout: number): Promise<Verdict> {
  const client = await context.client();
  const deadline = Date.now() + waitTimeout * 1000;
  try {
    await waitFor(context, id, ["running", "stopped", "failed"], { waitTimeout });
  } catch (error) {
    if (toFailure(error).error !== "deadline_exceeded") throw error;
    return { ok: false, text: `it has not come up after ${waitTimeout} s` };
  }
  for (;;) {
    const machine = await client.getMachine(context.app, id);
    const verdict = verdictOf(machine);
    if (verdict !== undefined) return verdict;
    if (Date.now() > deadline) {
      const why = machine.state_reason ?? machine.checks.map(({ name, output }) => `${name}: ${output}`).join("; ");
      return { ok: false, text: `it does not pass after ${waitTimeout} s${why === "" ? "" : `: ${why}`}` };
    }
    await delay(LOOK_MS);
  }
}

/** What to do about a machine that does not pass. */
export function stopped(
  context: Context,
  id: string,
  why: string,
  left: number,
  oldImage: string | undefined,
): CliError {
  const rest = left === 0 ? "" : ` The other ${left} machine${left === 1 ? " stays" : "s stay"} on the old version.`;
  const back = oldImage === undefined ? "" : `, or go back: hibernaut deploy --app ${context.app} --image ${oldImage}`;
  return new CliError(
    "failed_precondition",
    `Machine ${id} runs the new version, and ${why.replace(/\.$/, "")}.${rest} Look at \`hibernaut logs --app ${context.app} -m ${id}\`, correct it and deploy again${back}.`,
  );
}
