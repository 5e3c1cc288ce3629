/** Why a machine is awake or asleep, and how its last start was, in sentences. Pure. */
import { type Activity, COLD_REASONS, type Machine } from "@hibernaut/client/browser";
import { duration } from "../../format.ts";

/** Says why the machine is in its state, and what would change that. */
export function stateSentence(machine: Machine, awake: Activity["awake"] | undefined): string {
  const { state, state_reason: reason, suspend, crash } = machine;
  if (state === "suspended") return `It is asleep, with its memory on disk. ${wakingSentence(machine)}`;
  if (state === "restarting" && crash !== null)
    return `Its app ended: ${crash.reason}. Attempt ${crash.attempt} of ${crash.max_attempts} follows.`;
  if (state === "stopped" || state === "failed" || state === "created")
    return `${resting(state, reason)} ${wakingSentence(machine)}`;
  if (state !== "running") return `It is ${state}.`;
  const cannot = suspend.eligible ? "" : ` It cannot be suspended: ${suspend.reasons.join("; ")}.`;
  return `${awake?.message ?? "It is running."}${cannot}`;
}

function resting(state: "stopped" | "failed" | "created", reason: string | null): string {
  if (state === "created") return "It has never been started.";
  const what = state === "failed" ? "It failed" : "It is stopped";
  return reason === null ? `${what}.` : `${what}: ${reason.replace(/\.$/, "")}.`;
}

/** Says what wakes a machine that does not run. */
function wakingSentence({ cordoned, config: { services = [], schedule } }: Machine): string {
  if (cordoned) return "It is cordoned: requests do not wake it, and Start does.";
  if (services.some(({ autostart = true }) => autostart)) return "A request to its app wakes it, and so does Start.";
  return schedule === undefined ? "Start wakes it." : "Its schedule starts it, and so does Start.";
}

/** Says how the machine last came up, without when that was. */
export function startSentence({ kind, reason, duration_ms: took }: NonNullable<Machine["last_boot"]>): string {
  const time = `It took ${duration(took)}.`;
  if (kind === "warm") return `was warm: the virtual machine was still in memory, next to its snapshot. ${time}`;
  if (kind === "resume") return `was a resume from its snapshot. ${time}`;
  const [word = "", ...details] = reason.split(": ");
  const more = details.length === 0 ? "" : ` (${details.join(": ")})`;
  return `was cold, because ${COLD_REASONS[word] ?? reason}${more}. ${time}`;
}
