/** Waits until a machine has shown that its new version works. */
import type { Machine, MachineState, WaitState } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { hasCrashed, lastWords } from "../crashed.ts";
import { CliError, toFailure } from "../failure.ts";
import { firstReached, waitForRun } from "../waiting.ts";

/** States in which a machine has shown whether it works. */
const VERDICTS: readonly WaitState[] = ["healthy", "unhealthy", "stopped", "failed", "restarting", "suspended"];

/** Where a machine is that the platform let sleep. */
const ASLEEP: ReadonlySet<MachineState> = new Set(["suspending", "suspended", "stopping", "stopped"]);

type HealthVerdict = { ok: true; text: string } | { ok: false; text: string; lastWords?: string };

/** Waits for a verdict, up to `waitTimeout` seconds. */
export async function untilHealthy(context: Context, id: string, waitTimeout: number): Promise<HealthVerdict> {
  const client = await context.client();
  let reached: WaitState | undefined;
  try {
    reached = await verdict(context, await client.getMachine(context.app, id), waitTimeout);
  } catch (error) {
    if (toFailure(error).error !== "deadline_exceeded") throw error;
  }
  const machine = await client.getMachine(context.app, id);
  const { status, reason: text } = machine.health;
  if (status === "healthy") return { ok: true, text };
  // One with a short idle timeout may be asleep by now.
  if (reached === "healthy" && fellAsleep(machine)) return { ok: true, text: `it worked, and is ${machine.state} now` };
  if (hasRun(machine)) return { ok: true, text: "it ran, and exited" };
  const late = `it did not ${machine.state === "running" ? "pass" : "come up"} within ${waitTimeout} s`;
  if (reached === undefined) return { ok: false, text: `${late}: ${text}` };
  return { ok: false, text, ...(hasCrashed(machine) && { lastWords: await lastWords(context, id) }) };
}

/** One wait from the start, so that nothing is missed of a machine that works for a moment and falls asleep. */
async function verdict(context: Context, machine: Machine, waitTimeout: number): Promise<WaitState> {
  const { services = [], checks = {} } = machine.config;
  const tells = services.length + Object.keys(checks).length > 0;
  if (tells) return firstReached(context, machine.id, VERDICTS, { waitTimeout });
  const { health, state } = await waitForRun(context, machine.id, { waitTimeout });
  return health.status === "healthy" ? "healthy" : (state as WaitState);
}

/** An app that worked and has crashed since does not work. */
function fellAsleep(machine: Machine): boolean {
  return ASLEEP.has(machine.state) && !hasCrashed(machine);
}

/** A machine on a schedule, and one that nobody starts again, is done when its app has exited without a failure. */
function hasRun({ config, state, crash }: Machine): boolean {
  const isForOnce = config.restart?.policy === "no" && (config.services ?? []).length === 0;
  return (config.schedule !== undefined || isForOnce) && state === "stopped" && crash === null;
}

/** A machine that stays on a new version that does not work. */
export class DoesNotWork extends CliError {
  readonly machineId: string;

  constructor(machineId: string, message: string) {
    super("failed_precondition", message);
    this.machineId = machineId;
  }
}

/** The error for a machine that does not work, with what to do next. */
export function stoppedError(
  context: Context,
  id: string,
  { text: why, lastWords: words = "" }: { text: string; lastWords?: string },
  left: number,
  oldImage: string | undefined,
): DoesNotWork {
  const rest = left === 0 ? "" : `The other ${left} machine${left === 1 ? " keeps" : "s keep"} the old version. `;
  const back = oldImage === undefined ? "" : `, or go back: hibernaut deploy --app ${context.app} --image ${oldImage}`;
  const what = `Machine ${id} has the new version, and ${why.replace(/\.$/, "")}.${words}`;
  const next = `${rest}See \`hibernaut logs --app ${context.app} -m ${id}\`, fix it and deploy again${back}.`;
  return new DoesNotWork(id, [what, next].join(words === "" ? " " : "\n"));
}
