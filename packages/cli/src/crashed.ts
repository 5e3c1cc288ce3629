/** Describes machines whose app crashes. */
import type { Crash, Machine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { CliError } from "./failure.ts";

/** Enough for the top of a stack trace and the line before it, which says what was tried. */
const LAST_LINES = 15;
/** The platform's own lines are in between: enough for a few attempts. */
const LINES_READ = 60;

/** Part of the platform's log line for every start. */
const STARTS = "-> starting.";

/** Whether the app crashed and has not come up since. */
export function hasCrashed({ crash, state }: Machine): boolean {
  return crash !== null && state !== "running";
}

/** Returns `restarting in 4 s, attempt 3 of 10: the app exited with code 1`; for any other machine, its state and reason. */
export function stateText(machine: Machine, now = Date.now()): string {
  const { state, state_reason: reason, crash } = machine;
  if (state === "restarting" && crash !== null) return `restarting ${nextAttempt(crash, now)}: ${crash.reason}`;
  if (state === "starting" && crash !== null)
    return `starting, attempt ${crash.attempt} of ${crash.max_attempts}; previously, ${crash.reason}`;
  if (reason !== null) return `${state}: ${reason}`;
  return isWarm(machine) ? `${state} (warm)` : state;
}

/** The state as lists show it, including a crash loop, a cordon and a kept VMM. That of an unreachable machine is an old one. */
export function stateCell(machine: Machine): string {
  const { state, crash, cordoned } = machine;
  if (isUnreachable(machine)) return `unreachable (was ${state})`;
  if (isCrashLoop(machine)) return `${state} (crash loop, ${crash?.attempt} of ${crash?.max_attempts})`;
  const notes = [...(isWarm(machine) ? ["warm"] : []), ...(cordoned ? ["cordoned"] : [])];
  return notes.length === 0 ? state : `${state} (${notes.join(", ")})`;
}

/** Whether the machine's host could not be asked, so that only what it last published is known. */
export function isUnreachable({ host_state: host }: Pick<Machine, "host_state">): boolean {
  return host === "unreachable";
}

/** The hosts of machines that could not be asked. */
export function hostsAway(machines: readonly Machine[]): string[] {
  return machines.filter(isUnreachable).map(({ host }) => host ?? "");
}

/** Whether the paused virtual machine of the suspended machine is kept in memory. */
export function isWarm({ snapshot }: Pick<Machine, "snapshot">): boolean {
  return (snapshot?.warm_until ?? null) !== null;
}

/** Whether the app crashed and the restart policy will start it again. */
export function isCrashLoop({ state, crash }: Machine): boolean {
  return crash !== null && crash.retry_at !== null && state !== "running";
}

/** Explains why a machine is not running, with the last output of its app and what to do next. */
export async function crashError(context: Context, machine: Machine, advice: string): Promise<CliError> {
  const { id, crash, state_reason: reason } = machine;
  const when = crash?.at_start === false ? "crashed" : "crashed on start";
  const again = crash !== null && crash.retry_at !== null;
  const next = again ? `It restarts ${nextAttempt(crash, Date.now())}.` : "It will not be restarted.";
  const text = `Machine ${id} ${when}: ${crash?.reason ?? reason ?? "no reason is known"}. ${next}`;
  return new CliError("failed_precondition", `${text}${await lastWords(context, id)}\n${advice}`);
}

/** The last output of the app, as an indented block; empty when it is not available. */
export async function lastWords(context: Context, id: string): Promise<string> {
  let [run, runBefore]: [string[], string[]] = [[], []];
  try {
    const client = await context.client();
    for await (const { stream, text } of client.readLogs(context.app, { machine: id, limit: LINES_READ })) {
      if (stream === "platform" && text.includes(STARTS)) [run, runBefore] = [[], run];
      if (stream === "stdout" || stream === "stderr") run.push(`\n  ${text}`);
    }
  } catch {
    return ""; // report the crash without its output
  }
  // The next attempt may have started already without printing anything. Attempts before that explain nothing.
  const lines = run.length > 0 ? run : runBefore;
  return lines.length === 0 ? " It printed nothing." : ` Last output:${lines.slice(-LAST_LINES).join("")}`;
}

function nextAttempt({ attempt, max_attempts: most, retry_at: due }: Crash, now: number): string {
  const seconds = due === null ? 0 : Math.max(0, Math.ceil((Date.parse(due) - now) / 1000));
  return `${seconds === 0 ? "now" : `in ${seconds} s`}, attempt ${attempt} of ${most}`;
}
