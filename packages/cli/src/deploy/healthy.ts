/** Waits until a machine has shown that its new version works. */
import type { Machine, WaitState } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { hasCrashed, lastWords } from "../crashed.ts";
import { CliError, toFailure } from "../failure.ts";
import { waitFor, waitForRun } from "../waiting.ts";

/** States in which a machine has shown whether it works. */
const VERDICTS: readonly WaitState[] = ["healthy", "unhealthy", "stopped", "failed", "restarting", "suspended"];

type HealthVerdict = { ok: true; text: string } | { ok: false; text: string; lastWords?: string };

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
  const { status, reason: text } = machine.health;
  if (status === "healthy") return { ok: true, text };
  if (hasRun(machine)) return { ok: true, text: "it ran, and exited" };
  if (Date.now() > deadline || (status === "unknown" && machine.state === "running"))
    return { ok: false, text: `${late}: ${text}` };
  return { ok: false, text, ...(hasCrashed(machine) && { lastWords: await lastWords(context, id) }) };
}

/** A machine on a schedule is done when its app has exited without a failure. */
function hasRun({ config, state, crash }: Machine): boolean {
  return config.schedule !== undefined && state === "stopped" && crash === null;
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
