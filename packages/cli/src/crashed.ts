/** What is said of a machine whose app crashes. */
import type { Crash, Machine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { CliError } from "./failure.ts";

/** Enough for a stack trace's head, and for the line before it that says what was tried. */
const LAST_LINES = 15;
/** The platform's own lines stand between them: those of a few attempts. */
const LINES_READ = 60;

/** In the platform's line of a start, whatever asked for it. */
const STARTS = "-> starting.";

/** Whether its app ended by itself and has not come up since, whatever the machine is at. */
export function hasCrashed({ crash, state }: Machine): boolean {
  return crash !== null && state !== "running";
}

/** `restarting in 4 s, attempt 3 of 10: the app exited with code 1`; of any other machine its state and reason. */
export function stateText({ state, state_reason: reason, crash }: Machine, now = Date.now()): string {
  if (state === "restarting" && crash !== null) return `restarting ${nextAttempt(crash, now)}: ${crash.reason}`;
  if (state === "starting" && crash !== null)
    return `starting, attempt ${crash.attempt} of ${crash.max_attempts}: before, ${crash.reason}`;
  return reason === null ? state : `${state}: ${reason}`;
}

/** The state as lists show it: a crash loop is seen whatever the machine is at. */
export function stateCell(machine: Machine): string {
  const { state, crash } = machine;
  return isCrashLoop(machine) ? `${state} (crash loop, ${crash?.attempt} of ${crash?.max_attempts})` : state;
}

/** Whether its app crashed, and is started again by the restart policy. */
export function isCrashLoop({ state, crash }: Machine): boolean {
  return crash !== null && crash.retry_at !== null && state !== "running";
}

/** Why a machine does not run, with what its app printed last and what to do. */
export async function crashError(context: Context, machine: Machine, advice: string): Promise<CliError> {
  const { id, crash, state_reason: reason } = machine;
  const when = crash?.at_start === false ? "crashed" : "crashed at its start";
  const again = crash !== null && crash.retry_at !== null;
  const next = again ? `It is started again ${nextAttempt(crash, Date.now())}.` : "It is not started again.";
  const text = `Machine ${id} ${when}: ${crash?.reason ?? reason ?? "no reason is known"}. ${next}`;
  return new CliError("failed_precondition", `${text}${await lastWords(context, id)}\n${advice}`);
}

/** What the app printed in its last run, as an indented block; empty when that cannot be had. */
export async function lastWords(context: Context, id: string): Promise<string> {
  let [run, runBefore]: [string[], string[]] = [[], []];
  try {
    const client = await context.client();
    for await (const { stream, text } of client.readLogs(context.app, { machine: id, limit: LINES_READ })) {
      if (stream === "platform" && text.includes(STARTS)) [run, runBefore] = [[], run];
      if (stream === "stdout" || stream === "stderr") run.push(`\n  ${text}`);
    }
  } catch {
    return ""; // the crash is what counts
  }
  // The next attempt may have begun already, and printed nothing yet. Earlier ones explain nothing.
  const lines = run.length > 0 ? run : runBefore;
  return lines.length === 0 ? " It printed nothing." : ` It printed last:${lines.slice(-LAST_LINES).join("")}`;
}

function nextAttempt({ attempt, max_attempts: most, retry_at: due }: Crash, now: number): string {
  const seconds = due === null ? 0 : Math.max(0, Math.ceil((Date.parse(due) - now) / 1000));
  return `${seconds === 0 ? "now" : `in ${seconds} s`}, attempt ${attempt} of ${most}`;
}
